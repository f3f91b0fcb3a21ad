"""iptables-save and ip6tables-save, of iptables-legacy and iptables-nft, and ``iptables -S``.

Theory of operation
===================

What iptables-save printed and nobody touched is read by four regular expressions over the whole
text: tables, chains, and the rows of each chain as one piece. No row becomes an object; a rule
is understood when its chain is first looked at (`SlicedRows`). Of a dump of a hundred thousand
rules a question usually concerns a few dozen.

Everything else (a paste with prompts, a fragment, ``iptables -S``, a cut-off file) goes line by
line through `careful`, which gives the same values, and a diagnostic for whatever is odd.

Source: iptables/iptables-save.c, ``do_output``; iptables/nft.c, ``nft_chain_save``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from analyzer.model.rules import Chain, Ruleset, Table
from analyzer.parsers.header import GENERATED, family_of
from analyzer.parsers.rows import Block, Chains, SlicedRows

_BLOCK: Final = re.compile(
    r"\*(?P<table>\w+)\n"
    r"(?P<chains>(?::\S+ \S+ \[\d{1,20}:\d{1,20}\]\n)*+)"
    r"(?P<rows>(?:(?:\[\d+:\d+\] )?-A .*\n)*+)"
    r"COMMIT\n"
)
_BETWEEN: Final = re.compile(r"(?:#.*\n|[ \t]*\n)*+")
#: The rows of one chain, which iptables-save prints together.
_GROUP: Final = re.compile(r"(?:\[\d+:\d+\] )?-A (\S+) .*\n(?:(?:\[\d+:\d+\] )?-A \1 .*\n)*+")
_SNIFF: Final = re.compile(
    r"^[-+ \t>$]*(?:\*\s*[a-z]+\s*$|:\S+ (?:ACCEPT|DROP|-) \[\d+:\d+\]|-P [A-Z]+ (?:ACCEPT|DROP)"
    r"|(?:\[\d+:\d+\]\s*)?-A \S+ )",
    re.MULTILINE,
)


def sniff(text: str) -> bool:
    """Tell whether `text` has a line that iptables-save or ``iptables -S`` prints."""
    return _SNIFF.search(text) is not None


def parse(
    text: str,
    file: str,
    table: str | None = None,
    advance: Callable[[int, int | None], None] | None = None,
) -> Ruleset:
    """Read a dump; `table` names the table where the text does not, as of ``iptables -S``.

    Raises:
        InputError: it holds no rule and no chain.
    """
    found = None if table else _clean(text, file)
    if found is not None:
        return found
    from analyzer.parsers.careful import CarefulReader

    return CarefulReader(file, table, advance).read(text)


def _clean(text: str, file: str) -> Ruleset | None:
    """Return what iptables-save printed, untouched; None when the text is anything else."""
    tables: dict[str, Table] = {}
    family = family_of(text)
    rules = 0
    at = 0
    while True:
        between = _BETWEEN.match(text, at)
        assert between is not None  # it may be empty
        if any(family_of(head[0]) != family for head in GENERATED.finditer(between[0])):
            return None
        at = between.end()
        if at == len(text):
            break
        block = _BLOCK.match(text, at)
        if block is None or block["table"] in tables:
            return None
        table = _table(text, file, family, block)
        if table is None:
            return None
        tables[table.name] = table
        rules += text.count("\n", *block.span("rows"))
        at = block.end()
    if not tables:
        return None
    head = GENERATED.search(text)
    return Ruleset(
        tables=tables,
        family=family,
        input_format="iptables-save",
        rules=rules,
        file=file,
        backend=None if head is None else "nft" if head[2] else "legacy",
    )


def _table(text: str, file: str, family: str, block: re.Match[str]) -> Table | None:
    words = block["chains"].split()
    names = [word[1:] for word in words[::3]]
    declared = dict(zip(names, range(0, len(words), 3), strict=True))
    groups = {found[1]: found.span() for found in _GROUP.finditer(text, *block.span("rows"))}
    # A chain in two pieces leaves a hole; a row of a chain that nobody declared is odd too.
    whole = sum([end - start for start, end in groups.values()])
    if whole != block.end("rows") - block.start("rows") or not groups.keys() <= declared.keys():
        return None
    rows = Block(text, groups, block.span("rows"))

    def make(name: str) -> Chain:
        at = declared[name]
        policy, counters = words[at + 1], words[at + 2]
        packets, _, octets = counters[1:-1].partition(":")
        return Chain(
            name,
            SlicedRows(file, declared, rows, name),
            None if policy == "-" else policy,
            (int(packets), int(octets)),
        )

    return Table(family, block["table"], Chains(declared, make, rows))


def render(ruleset: Ruleset) -> str:
    """Return the tables as iptables-save prints them, without its comments and counters."""
    from analyzer.parsers.xt.rule import render_rule

    lines: list[str] = []
    for table in ruleset.tables.values():
        lines.append(f"*{table.name}")
        lines += [f":{c.name} {c.policy or '-'} [0:0]" for c in table.chains.values()]
        lines += [
            render_rule(chain.name, rule) for chain in table.chains.values() for rule in chain.rules
        ]
        lines.append("COMMIT")
    return "\n".join(lines) + "\n"
