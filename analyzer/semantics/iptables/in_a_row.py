"""What a rule of iptables certainly does with all packets from one network of sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from analyzer.model.intervals import Intervals, span
from analyzer.model.iptables.matches import Match, MatchDestination, MatchSource
from analyzer.model.iptables.rules import Rule
from analyzer.model.iptables.targets import Accept, Drop, Reject, Return
from analyzer.model.packet import Packet
from analyzer.model.region import Parted
from analyzer.model.ternary import Ternary
from analyzer.semantics.in_a_row import Decided
from analyzer.semantics.iptables.matching import match_all
from analyzer.semantics.iptables.passing import passed_by
from analyzer.semantics.match_result import CERTAIN
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import FellThrough

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.semantics.in_a_row import End


def deciding(
    rules: Sequence[Rule], situation: Situation
) -> tuple[Callable[[int, Packet], Decided | None], Callable[[int, Packet], Decided | None]]:
    """Return what tells what each rule does, and the same for rules that match on sources alone.

    None: it is not certain, or there is no such rule.
    """

    def decided(at: int, packet: Packet, *, alone: bool = False) -> Decided | None:
        if at >= len(rules) or (alone and len(rules[at].matches) > 1):
            return None
        return decides(rules[at], packet, situation)

    return decided, partial(decided, alone=True)


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
    if asked is None:
        return None
    outcome: End | Packet | None
    match rule.target:
        case Accept() | Drop() | Reject():
            outcome = rule.target
        case Return():
            outcome = FellThrough()
        case _:
            outcome = passed_by(packet, rule, situation)
            if outcome is None:
                return None
    if not others:
        return Decided(rule, asked, outcome)
    try:
        result = match_all(tuple(others), packet, situation)
    except Parted:
        return None
    if result.known is Ternary.FALSE:
        return Decided(rule, (), outcome)
    return Decided(rule, asked, outcome) if result is CERTAIN else None
