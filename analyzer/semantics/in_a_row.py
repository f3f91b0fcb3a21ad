"""Consecutive rules that each match some sources, for example block lists, evaluated at once.

Each of these rules splits the sources of a packet, or the destinations of an answer. To begin the
traversal again after each split, once for either part, takes ten times as long as to split them
here. The tree is the same, except that many with one outcome are one part, wherever in the row they
stand.

Where nothing is known of the sources, each of these rules may match or not. If many in a row have
one outcome, the tree has one fork for all of them: bounds are the same, as an outcome that any of
several rules may bring about is as likely as one that a single rule may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from analyzer.model.intervals import Interval, Intervals, common_of, joined
from analyzer.model.iptables.targets import Accept, Drop, Reject
from analyzer.model.packet import Packet
from analyzer.model.region import Parted, Region
from analyzer.model.value import replace
from analyzer.semantics.tree import AnyRule, BySource, FellThrough, Leaf, Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Most rules in a row with one outcome that are told apart: each has a part of its own in every
#: route, and for every endpoint.
_MOST_APART: Final = 8


class Decided(NamedTuple):
    """What a rule does that certainly takes all packets from some sources, and no others.

    Attributes:
        asked: the flows' sources that it takes; none: it takes no packet like this one.
        outcome: `FellThrough` if they leave the chain.
    """

    rule: AnyRule
    asked: Intervals
    outcome: Accept | Drop | Reject | FellThrough


def split_in_a_row(
    at: int,
    packet: Packet,
    decides: Callable[[int, Packet], Decided | None],
    allowed: Callable[[], bool],
    goes_on: Callable[[int, Packet], Tree],
) -> Tree | None:
    """Return what happens to a packet from the rule with index `at` on, which splits its sources.

    `decides` returns what the rule with an index does, or None if that is not certain, does not
    depend on sources alone, or there is no such rule. `allowed` counts a split, and returns whether
    there may be one; `goes_on` returns what happens from another rule on. None: fewer than two
    rules in a row decide on sources.
    """
    whole = packet.from_all()
    if packet.clients is None or packet.sources is packet.destinations:
        return None
    row: list[_Taken] = []
    rest: Tree | None = None
    while rest is None and packet.clients is not None:
        decided = decides(at, packet)
        if decided is None:
            break
        region = packet.clients
        inside = common_of(region.intervals, decided.asked)
        if inside == region.intervals:
            rest = _end(decided, whole)
        elif inside:
            row.append(_Taken(at, region, decided))
        packet = whole  # the next rule is evaluated for all of them again
        at += 1
    splits: list[tuple[Parted, Tree]] = []
    for first, region, decided in _by_outcome(row):
        inside = common_of(region.intervals, decided.asked)
        if inside == region.intervals:  # together they take all
            rest = _end(decided, whole)
            break
        if not inside:  # rules before it take all of them
            continue
        if not allowed():
            at, rest = first, None
            break
        splits.append((Parted(region, decided.asked, inside), _end(decided, whole)))
    if not splits:
        return rest if row else None
    rest = rest or goes_on(at, whole)
    for by, end in reversed(splits):
        rest = BySource(by.asked, ((by.inside, end), (by.outside, rest)))
    return rest


def together(by: Parted, at: int, asks: Callable[[int], Intervals | None]) -> Parted:
    """Return a split like `by`, of all addresses that some of the rules in a row match on.

    `asks` returns the addresses that the rule with an index matches on; None: it does not, or there
    is no such rule. Each of them splits addresses that are no client's, and the traversal begins
    again for either part: most often the rest is all that there is to evaluate.
    """
    asked = [*by.asked]
    while (found := asks(at)) is not None and by.region.common(found) != by.region.intervals:
        asked += found
        at += 1
    if len(asked) == len(by.asked):
        return by
    every = joined(asked)
    inside = by.region.common(every)
    return by if inside == by.region.intervals else Parted(by.region, every, inside)


def as_few(row: Sequence[tuple[AnyRule, Leaf, int]]) -> list[tuple[AnyRule, Leaf]]:
    """Return the rules of a row that may all end the traversal; too many with one outcome as one.

    The number of each is that of rules like it that follow it and are left out.
    """
    many: dict[object, int] = {}
    for _, leaf, others in row:
        many[leaf.outcome] = many.get(leaf.outcome, 0) + 1 + others
    found: dict[object, tuple[AnyRule, Leaf]] = {}
    for number, (rule, leaf, _) in enumerate(row):
        if not is_long(many[leaf.outcome]):
            found[number] = rule, leaf
        elif leaf.outcome not in found:
            first = _of_many(rule, many[leaf.outcome] - 1)
            found[leaf.outcome] = first, Leaf(leaf.outcome, leaf.packet, (first,))
    return [*found.values()]


def is_long(many: int) -> bool:
    """Return whether a row has too many rules with one outcome to tell them apart."""
    return many > _MOST_APART


class _Taken(NamedTuple):
    """What the rule with index `at` takes of a region, which is a part of it."""

    at: int
    region: Region
    decided: Decided


def _by_outcome(row: Sequence[_Taken]) -> Iterator[_Taken]:
    """Yield the rules of a row; many with one outcome as one, whose text says how many they are.

    A part of its own for each of thousands of sources that are banned would tell nothing more.
    """
    if row and row[0].region is not row[-1].region:  # a rule before has split those of the first
        yield row[0]
        row = row[1:]
    alike: dict[object, list[int]] = {}
    for number, each in enumerate(row):
        alike.setdefault(each.decided.outcome, []).append(number)
    many = {outcome for outcome, same in alike.items() if is_long(len(same))}
    if not many:
        yield from row
        return
    taken = _first_of(row)
    for number, each in enumerate(row):
        rule, _, outcome = each.decided
        if outcome not in many:
            yield each._replace(decided=Decided(rule, taken[number], outcome))
        elif number == alike[outcome][0]:
            asked = joined(i for n in alike[outcome] for i in taken[n])
            yield each._replace(
                decided=Decided(_of_many(rule, len(alike[outcome]) - 1), asked, outcome)
            )


def _first_of(row: Sequence[_Taken]) -> list[Intervals]:
    """Return for each rule the addresses that it matches on and no rule before it does."""
    begins = sorted(
        (low, n, high) for n, each in enumerate(row) for low, high in each.decided.asked
    )
    found: list[list[Interval]] = [[] for _ in row]
    # Those that match on the address `at`, by their place in the row, and until which address.
    open_at: list[tuple[int, int]] = []
    number = at = 0
    while number < len(begins) or open_at:
        if not open_at:
            at = max(at, begins[number][0])
        while number < len(begins) and begins[number][0] <= at:
            _, rule, last = begins[number]
            heappush(open_at, (rule, last))
            number += 1
        while open_at and open_at[0][1] < at:
            heappop(open_at)
        if open_at:
            rule, last = open_at[0]
            if number < len(begins):
                last = min(last, begins[number][0] - 1)
            found[rule].append((at, last))
            at = last + 1
    return [*map(joined, found)]


def _of_many(rule: AnyRule, others: int) -> AnyRule:
    """Return a rule whose text says how many others after it do the same."""
    return replace(rule, raw=f"{rule.raw} (or one of {others:,} more such rules after it)")


def _end(decided: Decided, packet: Packet) -> Leaf:
    return Leaf(decided.outcome, packet, (decided.rule,))
