"""What a rule of iptables does that matches one network of sources and decides on all of it."""

from __future__ import annotations

from analyzer.model.intervals import Intervals, span
from analyzer.model.iptables.matches import Match, MatchDestination, MatchSource
from analyzer.model.iptables.rules import Rule
from analyzer.model.iptables.targets import Accept, Drop, Reject, Return
from analyzer.model.packet import Packet
from analyzer.model.region import Parted
from analyzer.model.ternary import Ternary
from analyzer.semantics.in_a_row import Decided
from analyzer.semantics.iptables.matching import match_all
from analyzer.semantics.match_result import CERTAIN
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import FellThrough


def decides(rule: Rule, packet: Packet, situation: Situation) -> Decided | None:
    """Return what a rule does with packets like this one from the sources that it matches.

    None: it is not certain, or not for one network alone.
    """
    asked: Intervals | None = None
    others: list[Match] = []
    kind = MatchDestination if packet.is_answer else MatchSource
    for match in rule.matches:
        if not isinstance(match, kind):
            others.append(match)
        elif asked is None:
            asked = (span(match.network),)
        else:
            return None
    if asked is None or not isinstance(rule.target, Accept | Drop | Reject | Return):
        return None
    outcome = FellThrough() if isinstance(rule.target, Return) else rule.target
    if not others:
        return Decided(rule, asked, outcome)
    try:
        result = match_all(tuple(others), packet, situation)
    except Parted:
        return None
    if result.known is Ternary.FALSE:
        return Decided(rule, (), outcome)
    return Decided(rule, asked, outcome) if result is CERTAIN else None
