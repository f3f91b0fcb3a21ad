"""What a ruleset contains that is not understood, and which chains and sets are missing."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from analyzer.model.diagnostics import Diagnostic, partial_warning
from analyzer.model.nft.expressions import (
    AnonymousSet,
    Concat,
    Element,
    Expression,
    Goto,
    Jump,
    MapLookup,
    SetRef,
    Unknown,
)
from analyzer.model.nft.lazy import Lazy
from analyzer.model.nft.ruleset import Chain, NftRuleset, Rule, Set, Table
from analyzer.model.nft.statements import Match, SetUpdate, Statement, Vmap, Xt
from analyzer.parsers.nft_json import FORMAT as JSON

#: Rules that kube-proxy writes by the ten thousand: nothing in them is unknown, and they name no
#: chain that is not looked up below.
_PLAIN: Final = re.compile(
    r"(?:\t\t(?:meta l4proto \w+ dnat (?:ip6? )?to (?:numgen random mod \d+ map \{[\w.: ,]*\}"
    r"|[\d.]+:\d+|\[[\da-f:]+\]:\d+)|ip6? saddr [\da-f.:]+ jump mark-for-masquerade)\n)+"
)
_WORDS: Final = re.compile(r"[\w\s.:,/-]*+")
#: The name of a set in a rule, in text and JSON.
_SET: Final = re.compile(r"@([^\s\",}]+)")
_SHOWN: Final = 60


def survey(
    ruleset: NftRuleset,
    visited: Mapping[str, Iterable[str]] | None = None,
    known: Collection[tuple[str, str, str]] = (),
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each kind of thing that is not understood or missing.

    Lines are those of text, or numbers of objects in JSON. `visited` lists, by family and name of
    the table, the chains to look at, with the sets that their rules name; None: all. `known` are
    sets and maps, by family, table and name, that are known to be understood.
    """
    for table in ruleset.tables.values():
        found: dict[tuple[str, str], list[int]] = {}
        names: Iterable[str] = table.chains
        if visited is not None:
            names = visited.get(f"{table.family} {table.name}", ())
        sets: Mapping[str, Set] = {} if visited is not None else table.sets
        for chain in (table.chains[name] for name in names if name in table.chains):
            if visited is not None:
                sets = {**sets, **_named_sets(chain, table)}
            if not _is_plain(ruleset, chain):
                for rule in chain.rules:
                    _of_rule(rule, table, found)
        for name, held in sets.items():
            if (table.family, table.name, name) in known or _is_plain_set(held):
                continue
            for element in held.elements:
                _of_element(element, table, 0, found)
            if held.key == ("unknown",):
                found.setdefault(("unknown-set", f"set {name} is not understood"), []).append(0)
        where = f"table {table.family} {table.name}"
        for (code, message), lines in found.items():
            yield _finding(ruleset, lines, code, f"{where}: {message}")


def _is_plain_set(held: Set) -> bool:
    """Return whether a set, but no map, contains plain words only, which are always understood."""
    if held.value is not None or not isinstance(held.elements, Lazy):
        return False
    source = held.elements.source
    if isinstance(source, str):
        return _WORDS.fullmatch(source) is not None
    if not isinstance(source, list):
        return False
    return all(isinstance(each, str) or _is_plain_key(each) for each in source)


def _is_plain_key(given: object) -> bool:
    match given:
        case {"concat": list(parts), **rest} if not rest:
            return all(isinstance(part, str | int) for part in parts)
        case _:
            return False


def _named_sets(chain: Chain, table: Table) -> dict[str, Set]:
    """Return the sets that a chain's rules name."""
    found = {}
    for rule in chain.rules:
        for name in _SET.findall(rule.raw):
            if name in table.sets:
                found[name] = table.sets[name]
    return found


def _is_plain(ruleset: NftRuleset, chain: Chain) -> bool:
    if ruleset.input_format == JSON or not isinstance(chain.rules, Lazy):
        return False
    body = chain.rules.source[0]
    return _PLAIN.fullmatch(body) is not None


def _of_rule(rule: Rule, table: Table, found: dict[tuple[str, str], list[int]]) -> None:
    line = rule.location.line
    for each in rule.statements:
        for code, message in _of_statement(each, table):
            found.setdefault((code, message), []).append(line)
        held: tuple[Element, ...] = ()
        match each:
            case Vmap(_, AnonymousSet(elements)) | Match(_, _, AnonymousSet(elements)):
                held = elements
            case SetUpdate():
                held = (each.element,)
            case _:
                pass
        for element in held:
            _of_element(element, table, line, found)


def _of_statement(given: Statement, table: Table) -> Iterator[tuple[str, str]]:
    match given:
        case Unknown(text):
            yield "unknown-statement", f"not understood, so the answer may be bounds: {_cut(text)}"
        case Xt(kind, name):
            what = f"xt {kind} {name}".strip() if name else f"an xt {kind} without a translation"
            yield (
                "iptables-nft",
                f"{what} of iptables-nft, which nft does not print; run `iptables-save` on the "
                "node and pass its output instead",
            )
        case Jump(chain) | Goto(chain) if chain not in table.chains:
            yield "missing-chain", f"chain {chain} is not in the dump"
        case Match(_, left, right):
            yield from _of_sets(left, table)
            yield from _of_sets(right, table)
        case Vmap(key, data):
            yield from _of_sets(key, table)
            yield from _of_sets(data, table)
        case SetUpdate() if given.set not in table.sets:
            yield "missing-set", f"set {given.set} is not in the dump"
        case _:
            pass


def _of_sets(given: Expression, table: Table) -> Iterator[tuple[str, str]]:
    match given:
        case SetRef(name) if name not in table.sets:
            yield "missing-set", f"set {name} is not in the dump"
        case MapLookup(key, data):
            yield from _of_sets(key, table)
            yield from _of_sets(data, table)
        case Concat(parts):
            for part in parts:
                yield from _of_sets(part, table)
        case Unknown(text):
            yield "unknown-expression", f"not understood: {_cut(text)}"
        case _:
            pass


def _of_element(
    given: Element, table: Table, line: int, found: dict[tuple[str, str], list[int]]
) -> None:
    match given.key, given.value:
        case Unknown(text), _:
            key = "unknown-element", f"not understood: {_cut(text)}"
        case _, Jump(chain) | Goto(chain) if chain not in table.chains:
            key = "missing-chain", f"chain {chain} is not in the dump"
        case _:
            return
    found.setdefault(key, []).append(line)


def _cut(text: str) -> str:
    """Return the words that distinguish kinds, so that a thousand of one kind are one finding."""
    words = re.sub(r"[\d.:]{2,}|\d", "N", " ".join(text.split()))
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN]}..."


def _finding(ruleset: NftRuleset, lines: list[int], code: str, message: str) -> Diagnostic:
    more = f" ({len(lines)} times)" if lines[1:] else ""
    first = lines[0] or None
    if ruleset.input_format == JSON and first is not None:
        # Its numbers are of objects, while a JSON file has lines of its own.
        message, first = f"object {first}, {message}", None
    return partial_warning(code, message + more, ruleset.file, first)
