"""Base chains of nft that see frames of a bridge or of ARP; they are not evaluated.

Source: nft(8), "ADDRESS FAMILIES": bridge and arp; those of netdev see packets (`at_devices`).
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.model.nft.expressions import Accept, Continue, Goto, Jump, Return
from analyzer.model.nft.ruleset import Chain, NftRuleset, Table
from analyzer.model.nft.statements import (
    Counter,
    CtCount,
    Limit,
    Log,
    Match,
    ObjectRef,
    Quota,
    Statement,
    Xt,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_FAMILIES: Final = frozenset({"arp", "bridge"})
_DORMANT: Final = "dormant"


def frame_chains(ruleset: NftRuleset) -> Iterator[tuple[Table, Chain]]:
    """Yield the base chains that see frames and do anything, with their tables."""
    for table in ruleset.tables.values():
        for chain in table.chains.values():
            if chain.hook is None or not (len(chain.rules) or chain.policy == "drop"):
                continue
            if table.family in _FAMILIES and _DORMANT not in table.flags:
                yield table, chain


def may_end(table: Table, chain: Chain) -> bool:
    """Return whether a base chain may end or change a frame, as far as its rules show."""
    if chain.policy not in {None, "accept"}:
        return True
    seen = [chain.name]
    for name in seen:
        rules = table.chains[name].rules if name in table.chains else None
        if rules is None:
            return True
        for rule in rules:
            if not all(map(_lets_pass, rule.statements)):
                return True
            led = [s.chain for s in rule.statements if isinstance(s, Jump | Goto)]
            seen += [each for each in led if each not in seen]
    return False


def as_text(table: Table, chain: Chain) -> str:
    """Return what a base chain does and on what that rests, equal if it is the same."""
    names = [chain.name, *(name for name, other in table.chains.items() if other.hook is None)]
    told: list[object] = [chain.hook, chain.priority, chain.policy, chain.devices]
    for name in names:
        told.append(name)
        told += [s for r in table.chains[name].rules for s in r.statements if not _counts(s)]
    told += [each for held in table.sets.values() for each in (held.name, *held.elements)]
    return "\n".join(map(repr, told))


def _counts(statement: Statement) -> bool:
    return isinstance(statement, Counter)


def _lets_pass(statement: Statement) -> bool:
    match statement:
        case Match() | Counter() | Limit() | Quota() | Log() | CtCount():
            return True
        case Accept() | Continue() | Return() | Jump() | Goto():
            return True
        case ObjectRef(kind):
            return kind in {"counter", "quota", "limit"}
        case Xt(kind):
            return kind == "match"
        case _:
            return False
