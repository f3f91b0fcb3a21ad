"""Consecutive rules that each match one network, for example block lists, evaluated at once.

Each of these rules splits the sources of a packet, or the destinations of an answer. To begin the
traversal again after each split, once for either part, takes ten times as long as to split them
here. The tree is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from analyzer.model.iptables.matches import Match, MatchDestination, MatchSource
from analyzer.model.iptables.rules import Rule
from analyzer.model.iptables.targets import Accept, Drop, Reject, Return
from analyzer.model.packet import Packet
from analyzer.model.region import Intervals, Parted, Region, common_of, joined, span
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.iptables.matching import CERTAIN, match_all
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import BySource, FellThrough, Leaf, Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Most rules in a row with one outcome that are told apart.
_MOST_APART: Final = 64


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
    row: list[_Taken] = []
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
            row.append(_Taken(at, rules[at], region, asked))
        packet = whole  # the next rule is evaluated for all of them again
        at += 1
    splits: list[tuple[Parted, Tree]] = []
    for first, rule, region, asked in _by_outcome(row):
        inside = common_of(region.intervals, asked)
        if inside == region.intervals:  # together they take all
            rest = _end(rule, whole)
            break
        if not allowed():
            at, rest = first, None
            break
        splits.append((Parted(region, asked, inside), _end(rule, whole)))
    if not splits:
        return rest if row else None
    rest = rest or goes_on(at, whole)
    for by, end in reversed(splits):
        rest = BySource(by.asked, ((by.inside, end), (by.outside, rest)))
    return rest


class _Taken(NamedTuple):
    """The sources that the rule with index `at` takes, some of those in a region."""

    at: int
    rule: Rule
    region: Region
    asked: Intervals


def _by_outcome(row: Sequence[_Taken]) -> Iterator[_Taken]:
    """Yield the rules of a row; many with one outcome as one, whose text says how many they are.

    A part of its own for each of thousands of sources that are banned would tell nothing more.
    """
    for _, alike in groupby(row, lambda each: (each.rule.target, id(each.region))):
        same = [*alike]
        if len(same) <= _MOST_APART:
            yield from same
            continue
        at, rule, region, _ = same[0]
        text = f"{rule.raw} (or one of {len(same) - 1:,} more such rules after it)"
        yield _Taken(
            at, replace(rule, raw=text), region, joined(i for each in same for i in each.asked)
        )


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
