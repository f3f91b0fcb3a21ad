"""Which assumptions an nft rule depends on, so that an answer can list them."""

from __future__ import annotations

from analyzer.model.iptables import matches as m
from analyzer.model.nft.expressions import (
    Binary,
    Concat,
    Ct,
    Expression,
    Meta,
    Payload,
    SetRef,
)
from analyzer.semantics.situation import Situation


def asks(given: Expression) -> set[type]:
    """Return the iptables matches like an expression, if they depend on assumptions."""
    match given:
        case Meta("mark"):
            return {m.MatchMark}
        case Ct("mark"):
            return {m.MatchConnmark}
        case Payload("tcp", "flags"):
            return {m.MatchTcp}
        case Binary(_, left, _):
            return asks(left)
        case Concat(parts):
            return {kind for part in parts for kind in asks(part)}
        case _:
            return set()


def asks_affinity(given: Expression, situation: Situation) -> set[type]:
    """Return the iptables match for session affinity, if a set has that purpose."""
    kept = isinstance(given, SetRef) and given.name.startswith(situation.affinity_lists)
    return {m.MatchRecent} if kept else set()
