"""Consecutive rules that each match one network, for example block lists, evaluated at once.

Each of these rules splits the sources of a packet, or the destinations of an answer. To begin the
traversal again after each split, once for either part, takes ten times as long as to split them
here. The tree is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from analyzer.model.iptables.matches import Match, MatchDestination, MatchSource
from analyzer.model.iptables.rules import Rule
from analyzer.model.iptables.targets import Accept, Drop, Reject, Return
from analyzer.model.packet import Packet
from analyzer.model.region import Intervals, Parted, common_of, span
from analyzer.model.ternary import Ternary
from analyzer.semantics.iptables.matching import CERTAIN, match_all
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import BySource, FellThrough, Leaf, Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass


def split_in_a_row(
    rules: Sequence[Rule],
    at: int,
    packet: Packet,
    situation: Situation,
    allowed: Callable[[], bool],
    goes_on: Callable[[int, Packet], Tree],
) -> Tree | None:
    """Return what happens to a packet from the rule with index `at` on, which splits its sources.

    `allowed` counts a split, and returns whether there may be one; `goes_on` returns what happens
    from another rule on. None: fewer than two rules in a row decide on one network each.
    """
    whole = packet.from_all()
    if packet.clients is None or packet.sources is packet.destinations:
        return None
    splits: list[tuple[Parted, Tree]] = []
    rest: Tree | None = None
    while at < len(rules) and rest is None and packet.clients is not None:
        asked = decides(rules[at], packet, situation)
        if asked is None:
            break
        region = packet.clients
        inside = common_of(region.intervals, asked)
        if inside == region.intervals:
            rest = _end(rules[at], whole)
        elif inside:
            if not allowed():
                break
            splits.append((Parted(region, asked, inside), _end(rules[at], whole)))
        packet = whole  # the next rule is evaluated for all of them again
        at += 1
    if not splits:
        return None
    rest = rest or goes_on(at, whole)
    for by, end in reversed(splits):
        rest = BySource(by.asked, ((by.inside, end), (by.outside, rest)))
    return rest


def decides(rule: Rule, packet: Packet, situation: Situation) -> Intervals | None:
    """Return the flows' sources of which a rule certainly takes all packets like this one alone.

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
    if not others:
        return asked
    try:
        result = match_all(tuple(others), packet, situation)
    except Parted:
        return None
    if result.known is Ternary.FALSE:
        return ()
    return asked if result is CERTAIN else None


def _end(rule: Rule, packet: Packet) -> Leaf:
    outcome = FellThrough() if isinstance(rule.target, Return) else rule.target
    assert isinstance(outcome, Accept | Drop | Reject | FellThrough)
    return Leaf(outcome, packet, (rule,))
