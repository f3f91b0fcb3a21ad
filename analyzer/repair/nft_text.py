"""An nft table as one transaction that creates it.

Chains and sets come first, empty, since maps name chains and rules name sets: `nft list` prints
them in an order that nft does not accept. It contains no string of a dump that could begin another
command.

Source: nft(8); nftables, src/scanner.l, ``string``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from analyzer.model.nft.ruleset import Chain, Set, Table
from analyzer.parsers.nft.expressions import write_group
from analyzer.parsers.nft.rendering import render_rule
from analyzer.repair.patch import NotCopied

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_NAME: Final = re.compile(r"[A-Za-z_.][\w/.-]*", re.ASCII)
_ONE_COMMAND: Final = re.compile(r"[\w \t{}.,:;@/*&|^<>=!()\[\]+-]*", re.ASCII)
#: Elements of one command.
_ELEMENTS: Final = 100


def transaction(table: Table) -> str:
    """Return the commands; nft applies all of a file, or nothing.

    Raises:
        NotCopied: a name or string in it is none that kube-proxy writes.
    """
    lines = [f"create table {table.family} {table.name}", *_lines(table)]
    for line in lines:
        if not _ONE_COMMAND.fullmatch(line):
            raise NotCopied(f"{line[:60]!r} is not a single nft command")
    return "\n".join(lines) + "\n"


def _lines(table: Table) -> Iterator[str]:
    for name in (*table.chains, *table.sets):
        if not _NAME.fullmatch(name):
            raise NotCopied(f"nft has no way to write the name {name!r}")
    place = f"{table.family} {table.name}"
    for chain in table.chains.values():
        yield f"add chain {place} {chain.name}{_hook(chain)}"
    for each in table.sets.values():
        kind = "set" if each.value is None else "map"
        yield f"add {kind} {place} {each.name} {{ {_set(each)} }}"
    for chain in table.chains.values():
        for rule in chain.rules:
            yield f"add rule {place} {chain.name} {render_rule(rule)}"
    for each in table.sets.values():
        elements = tuple(each.elements)
        for first in range(0, len(elements), _ELEMENTS):
            group = write_group(elements[first : first + _ELEMENTS])
            yield f"add element {place} {each.name} {group}"


def _hook(chain: Chain) -> str:
    if chain.hook is None:
        return ""
    return f" {{ type {chain.type} hook {chain.hook} priority {chain.priority}; policy accept; }}"


def _set(given: Set) -> str:
    if given.typeof is not None:
        raise NotCopied(f"set {given.name} is declared by typeof")
    data = "" if given.value is None else f" : {' . '.join(given.value)}"
    says = [f"type {' . '.join(given.key)}{data}"]
    if given.size is not None:
        says.append(f"size {given.size}")
    if given.flags:
        says.append(f"flags {','.join(given.flags)}")
    if given.timeout is not None:
        says.append(f"timeout {given.timeout}s")
    return "".join(f"{each}; " for each in says).rstrip()
