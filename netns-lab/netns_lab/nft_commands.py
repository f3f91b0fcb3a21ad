"""The commands that load an nft ruleset, in an order that the kernel accepts.

Theory of operation
===================

What ``nft list ruleset`` prints does not load as it stands: verdict maps come before the chains
that their elements name. So all tables come first, with empty chains, sets and maps, then the rules
and elements, in the order of the dump. The order in which the kernel evaluates base chains of the
same hook and priority depends on when each was created; here that is the order of the dump.

What is loaded is rendered from the parsed ruleset, never the dump's own text. In addition, each
command is one line and contains nothing outside quotes that could begin another one, for example
``include``: a dump in JSON can hold any string in any place.

Comments are left out: they have no effect, and nft's language cannot express some of them.

Source: nft(8); nftables, src/scanner.l, src/parser_bison.y.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

from analyzer.model.nft import statements as st
from analyzer.model.nft.expressions import Meta, Unknown
from analyzer.model.nft.ruleset import Chain, NftRuleset, Rule, Set, Table
from analyzer.model.value import fields_of, is_value, replace
from analyzer.parsers.nft.expressions import write_group
from analyzer.parsers.nft.rendering import render, render_rule
from netns_lab.errors import LabError

T = TypeVar("T")

#: Elements per command, and chains per command; large maps and tables take many commands.
_ELEMENTS: Final = 100
_CHAINS: Final = 50
#: Source: src/scanner.l, ``string``.
_NAME: Final = re.compile(r"[A-Za-z_.][\w/.-]*", re.ASCII)
_QUOTED: Final = re.compile(r'"[^"\n\r\0]*"')
_HARMLESS: Final = re.compile(r"[\w ./:@+*-]*", re.ASCII)
_ONE_COMMAND: Final = re.compile(r"[\w \t{}.,:@/*&|^<>=!()\[\]+-]*", re.ASCII)
#: A table with an owner vanishes with the owning program, and no other may change it.
_NOT_OURS: Final = frozenset({"owner", "persist"})
_BY_INDEX: Final = frozenset({"iif", "oif"})


def commands(ruleset: NftRuleset) -> Iterator[str]:
    """Yield commands for libnftables.

    Raises:
        LabError: something in the ruleset is not understood, so it is not loaded.
    """
    tables = {place: _loadable(table, ruleset.file) for place, table in ruleset.tables.items()}
    for place, table in tables.items():
        for part in _frame(table, ruleset.file):
            yield render(replace(ruleset, tables={place: part}))
    for table in tables.values():
        yield from _contents(table, ruleset.file)


def understood(ruleset: NftRuleset) -> tuple[NftRuleset, list[tuple[Rule, str]]]:
    """Return the ruleset without the rules that are not understood, and these, each with why."""
    left_out: list[tuple[Rule, str]] = []

    def kept(chain: Chain) -> Chain:
        read = []
        for rule in chain.rules:
            unread = next(_not_understood(_rule(rule)), None)
            if unread is None:
                read.append(rule)
            else:
                left_out.append((rule, f"{unread!r} is not understood"))
        return chain if len(read) == len(chain.rules) else replace(chain, rules=tuple(read))

    tables = {
        place: replace(table, chains={name: kept(each) for name, each in table.chains.items()})
        for place, table in ruleset.tables.items()
    }
    return replace(ruleset, tables=tables), left_out


def devices(ruleset: NftRuleset) -> frozenset[str]:
    """Return the interfaces that must exist before rules can name them.

    ``iif`` and ``oif`` compare the index of an interface; ``iifname`` needs none.
    """
    found: set[str] = set()
    for table in ruleset.tables.values():
        for flowtable in table.flowtables.values():
            found.update(flowtable.devices)
        for chain in table.chains.values():
            found.update(chain.devices)
            for rule in chain.rules:
                found.update(*map(_devices_of, rule.statements))
    return frozenset(found)


def _devices_of(statement: st.Statement) -> Iterator[str]:
    match statement:
        case st.Match(_, Meta(key), right) if key in _BY_INDEX:
            yield from _strings(right)  # a name, or a set of them
        case st.Fwd(device=str(name)) | st.Dup(device=str(name)):
            yield name
        case _:
            pass


def _loadable(table: Table, file: str) -> Table:
    """Return the table without what has no effect.

    Raises:
        LabError: the dump ends within it, or part of it is not understood.
    """
    where = f"table {table.family} {table.name}"
    if not table.complete:
        raise LabError(
            f"{file}: {where} is not complete in the dump, so what is missing cannot be loaded; "
            "take the dump again"
        )
    chains = {name: _chain(chain) for name, chain in table.chains.items()}
    for chain in chains.values():
        if chain.hook is not None and chain.priority is None:
            raise LabError(f"{file}: {where} does not give the priority of chain {chain.name}")
        for rule in chain.rules:
            _check_understood(rule, f"{rule.location}")
    sets = {name: _set(held) for name, held in table.sets.items()}
    for held in sets.values():
        _check_understood(held, f"{file}: set {held.name} of {where}")
    for each in table.objects.values():
        if dict(each.properties).get("text") is not None:
            raise LabError(f"{file}: {each.kind} {each.name} of {where} is not understood")
    names = [table.family, table.name, *chains, *sets, *table.flowtables]
    names += [name for _, name in table.objects]
    for name in names:
        if not _NAME.fullmatch(name):
            raise LabError(f"{file}: nft has no way to write the name {name!r} in {where}")
    return replace(
        table,
        chains=chains,
        sets=sets,
        objects={at: replace(o, comment=None) for at, o in table.objects.items()},
        flags=tuple(flag for flag in table.flags if flag not in _NOT_OURS),
        comment=None,
    )


def _chain(chain: Chain) -> Chain:
    policy = "accept" if chain.hook is not None and chain.policy is None else chain.policy
    rules = tuple(map(_rule, chain.rules))
    return replace(chain, rules=rules, policy=policy, comment=None)


def _rule(rule: Rule) -> Rule:
    # Written by iptables-nft for `-m comment`, which has no effect.
    kept = tuple(each for each in rule.statements if each != st.Xt("match", "comment"))
    return replace(rule, statements=kept, comment=None)


def _set(held: Set) -> Set:
    elements = tuple(replace(each, comment=None) for each in held.elements)
    return replace(held, elements=elements, comment=None)


def _check_understood(given: Rule | Set, where: str) -> None:
    for found in _not_understood(given):
        help_ = (
            "--lenient leaves such rules out, and names them"
            if isinstance(given, Rule)
            else "take it out of the dump to measure without it"
        )
        raise LabError(
            f"{where}: the lab loads only what it understands, and not {found!r}; {help_}"
        )


def _not_understood(given: Any) -> Iterator[str]:
    match given:
        case Unknown(text):
            yield text
        case st.Xt(kind, name):
            yield f"xt {kind} {name}".strip()
        case tuple():
            for each in given:
                yield from _not_understood(each)
        case _ if is_value(given):
            for name in fields_of(type(given)):
                yield from _not_understood(getattr(given, name))
        case _:
            pass


def _frame(table: Table, file: str) -> Iterator[Table]:
    """Yield the table with its chains and sets empty, in parts.

    Raises:
        LabError: a string that should be a single word could be more.
    """
    chains = {name: replace(chain, rules=()) for name, chain in table.chains.items()}
    sets = {name: replace(held, elements=()) for name, held in table.sets.items()}
    frame = replace(table, chains=chains, sets=sets)
    for word in _strings(frame):
        if not _HARMLESS.fullmatch(word):
            raise LabError(
                f"{file}: {word!r} in table {table.family} {table.name} is not an nft word"
            )
    yield replace(frame, chains={})
    names = list(chains)
    bare = replace(frame, sets={}, objects={}, flowtables={})
    for first in range(0, len(names), _CHAINS):
        yield replace(bare, chains={n: chains[n] for n in names[first : first + _CHAINS]})


def _contents(table: Table, file: str) -> Iterator[str]:
    place = f"{table.family} {table.name}"
    for chain in table.chains.values():
        for rule in chain.rules:
            text = _written(render_rule, rule, f"{rule.location}")
            yield f"add rule {place} {chain.name} {text}"
    for held in table.sets.values():
        elements = tuple(held.elements)
        for first in range(0, len(elements), _ELEMENTS):
            some = elements[first : first + _ELEMENTS]
            text = _written(write_group, some, f"{file}: set {held.name} of table {place}")
            yield f"add element {place} {held.name} {text}"


def _written(write: Callable[[T], str], given: T, where: str) -> str:
    """Return the written text, which cannot begin another command, whatever strings it contains.

    Raises:
        LabError: it could.
    """
    try:
        text = write(given)
    except ValueError as error:
        raise LabError(f"{where}: {error}") from None
    if not _ONE_COMMAND.fullmatch(_QUOTED.sub("", text)):
        raise LabError(f"{where}: {text[:60]!r} is not a single nft command")
    return text


def _strings(given: Any) -> Iterator[str]:
    match given:
        case str():
            yield given
        case tuple():
            for each in given:
                yield from _strings(each)
        case Mapping():
            for key, each in given.items():
                yield from _strings((key, each))
        case _ if is_value(given):
            for name in fields_of(type(given)):
                yield from _strings(getattr(given, name))
        case _:
            pass
