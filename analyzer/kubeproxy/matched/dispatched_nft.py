"""Chains of nft that dispatch flows by device one by one, and drop all others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.kubeproxy.matched.nft import saying
from analyzer.model.devices import as_pattern
from analyzer.model.nft.expressions import (
    AnonymousSet,
    Drop,
    Element,
    Expression,
    Goto,
    Jump,
    Meta,
    SetRef,
)
from analyzer.model.nft.ruleset import Chain, NftRuleset, Table
from analyzer.model.nft.ruleset import Rule as NftRule
from analyzer.model.nft.statements import Counter, Match, Reject, Statement, Vmap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Most chains, each leading into the next, that are followed.
_DEEPEST: Final = 8


def dispatched(ruleset: NftRuleset, *, leaving: bool) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield a device all of whose packets reach such a chain, and the devices that it sends on."""
    asked = Meta("oifname" if leaving else "iifname")
    asking = {id(chain) for chain in saying(ruleset, "vmap") if _says(chain, "vmap")}
    for table in ruleset.tables.values() if asking else ():
        for chain in table.chains.values():
            names = _sent_on(table, chain, asked) if id(chain) in asking else None
            for pattern in _come_to(table, chain, asked) if names else ():
                yield pattern, names or frozenset()


def _says(chain: Chain, word: str) -> bool:
    return any(word in rule.raw for rule in chain.rules)


def _sent_on(table: Table, chain: Chain, asked: Expression) -> frozenset[str] | None:
    """Return the devices that a chain sends on by goto; None: it does not drop all others."""
    *before, last = chain.rules
    names: set[str] = set()
    for rule in before:
        match _bare(rule):
            case [Vmap(key, where)] if key == asked:
                held = _elements(table, where)
            case [Match("==", left, str() as name), Goto(to)] if left == asked:
                held = (Element(key=name, value=Goto(to)),)
            case _:
                return None
        for each in held:
            match each:
                case Element(key=str() as name, value=Goto()) if not name.endswith("*"):
                    names.add(name)
                case _:
                    return None
    match _bare(last):
        case [Drop() | Reject()]:
            return frozenset(names)
        case _:
            return None


def _elements(table: Table, where: object) -> Sequence[Element]:
    match where:
        case AnonymousSet(elements):
            return elements
        case SetRef(name) if name in table.sets and not table.sets[name].flags:
            return table.sets[name].elements
        case _:
            return (Element(key="*"),)


def _come_to(table: Table, chain: Chain, asked: Expression, depth: int = 0) -> frozenset[str]:
    """Return names of devices whose packets a rule sends to a chain unconditionally."""
    if chain.hook is not None:
        return frozenset({"+"})
    found: set[str] = set()
    for caller in table.chains.values() if depth < _DEEPEST else ():
        for rule in caller.rules if caller is not chain else ():
            if chain.name not in rule.raw:
                continue
            match _bare(rule):
                case [Match("==", left, str() as name), Jump(to) | Goto(to)] if (
                    left == asked and to == chain.name
                ):
                    found.add(as_pattern(name))
                case [Jump(to) | Goto(to)] if to == chain.name:
                    found |= _come_to(table, caller, asked, depth + 1)
                case _:  # not unconditionally
                    pass
    return frozenset(found)


def _bare(rule: NftRule) -> list[Statement]:
    return [each for each in rule.statements if not isinstance(each, Counter)]
