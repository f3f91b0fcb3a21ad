"""Sets of addresses: the possible sources or destinations of a packet until rules split them.

Theory of operation
===================

Evaluating the rules once for each source would take as many traversals as there are addresses. A
packet has a set of sources instead, and a rule that matches some of them and not the others splits
that set (`Parted`): the tree has a branch for each of the two. So the traversal itself finds which
sources the rules distinguish, and rules that the flow never reaches are not considered. After the
rule the packet has all its sources again, so that what follows is evaluated once for all of them:
the branches on the path to a leaf say which sources it applies to.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address, summarize_address_range
from itertools import pairwise

from analyzer.model.addresses import IPV4, WIDTHS
from analyzer.model.ternary import Ternary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.model.addresses import Address, Network

#: The first and the last address, as integers.
Interval = tuple[int, int]
#: In order; no two of them overlap or are adjacent.
Intervals = tuple[Interval, ...]

#: By IP version.
LOOPBACK: Final[dict[int, Intervals]] = {4: ((0x7F000000, 0x7FFFFFFF),), 6: ((1, 1),)}


#: Times as many intervals, to look at fewer of them takes less time than to look at all.
_MANY: Final = 8
#: Above every address.
_BEYOND: Final = 1 << 129


class Region:
    """A set of addresses of one IP version, which is not empty.

    Attributes:
        intervals: its addresses.
        code: a number that is the same for equal regions, quick to compare.
        whole: the region that rules have split to get this one; itself if none has.
    """

    __slots__ = ("_firsts", "code", "intervals", "version", "whole")

    def __init__(self, version: int, intervals: Intervals, whole: Region | None = None) -> None:
        self.version = version
        self.intervals = intervals
        self.whole = whole or self
        first, last = intervals[0], intervals[-1]
        self.code = hash((version, len(intervals), first, last, intervals[len(intervals) // 2]))
        self._firsts: list[int] | None = None

    @classmethod
    def of(cls, version: int, parts: Iterable[Interval]) -> Region | None:
        """Return the region of all addresses in some of the parts; None if there are none."""
        intervals = joined(parts)
        return cls(version, intervals) if intervals else None

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Region)
            and type(self) is type(other)
            and self.code == other.code
            and self.version == other.version
            and self.intervals == other.intervals
        )

    def __hash__(self) -> int:
        return self.code

    def __repr__(self) -> str:
        kind = IPv4Address if self.version == IPV4 else IPv6Address
        return f"Region({', '.join(f'{kind(a)}-{kind(b)}' for a, b in self.intervals)})"

    def __contains__(self, address: Address) -> bool:
        if address.version != self.version:
            return False
        number = int(address)
        at = self._at(number)
        return at < len(self.intervals) and self.intervals[at][0] <= number

    def _at(self, number: int) -> int:
        """Return the index of the first interval that does not end before `number`."""
        if len(self.intervals) == 1:
            return int(self.intervals[0][1] < number)
        if self._firsts is None:
            self._firsts = [first for first, _ in self.intervals]
        at = bisect_right(self._firsts, number) - 1
        return at if at >= 0 and self.intervals[at][1] >= number else at + 1

    def is_within(self, asked: Intervals) -> Ternary:
        """Return whether the address lies in `asked`.

        Raises:
            Parted: some of the region does, and some does not.
        """
        inside = self.common(asked)
        if not inside:
            return Ternary.FALSE
        if inside == self.intervals:
            return Ternary.TRUE
        raise Parted(self, asked, inside)

    def is_at(self, number: int) -> Ternary:
        """Return whether the address is this one, in less time than `is_within`; or raise it."""
        at = self._at(number)
        if at == len(self.intervals) or self.intervals[at][0] > number:
            return Ternary.FALSE
        return self.is_within(((number, number),))

    def common(self, asked: Intervals) -> Intervals:
        """Return the part of `asked` that is in the region."""
        found: list[Interval] = []
        mine = self.intervals
        for first, last in asked:
            for at in range(self._at(first), len(mine)):
                low, high = mine[at]
                if low > last:
                    break
                found.append((max(low, first), min(high, last)))
        return tuple(found)

    def without(self, asked: Intervals) -> Intervals:
        """Return the part of the region that is not in `asked`."""
        return without(self.intervals, asked)

    def part(self, intervals: Intervals) -> Region:
        """Return a part of the region, split off by a rule."""
        return Region(self.version, intervals, self.whole)


class Apart(Region):
    """Sources of a packet, except for the one that equals its destination.

    Attributes:
        destinations: its possible destinations, unsplit.
    """

    __slots__ = ("destinations",)

    def __init__(self, version: int, intervals: Intervals, destinations: Region) -> None:
        super().__init__(version, intervals)
        self.destinations = destinations


class Itself(Region):
    """The source and the destination of a packet, if they are the same address."""

    __slots__ = ()

    def part(self, intervals: Intervals) -> Region:
        """Return a part of it, which is evaluated separately."""
        return Itself(self.version, intervals)


class AnyOf(Region):
    """Addresses of which one is meant, no matter which: rules do not split them.

    A match that is true for some of them has an unknown result.

    Attributes:
        asked: the matches for which that happened.
    """

    __slots__ = ("asked",)

    def __init__(self, version: int, intervals: Intervals, whole: Region | None = None) -> None:
        super().__init__(version, intervals, whole)
        self.asked: set[Intervals] = set()

    def is_within(self, asked: Intervals) -> Ternary:
        """Return whether the address lies in `asked`; unknown if some of the region does."""
        inside = self.common(asked)
        if not inside:
            return Ternary.FALSE
        if inside == self.intervals:
            return Ternary.TRUE
        self.asked.add(asked)
        return Ternary.UNKNOWN


def common_of(one: Intervals, other: Intervals) -> Intervals:
    """Return the addresses that are in both."""
    if len(one) > _MANY * len(other):
        return _clipped(one, other)
    if len(other) > _MANY * len(one):
        return _clipped(other, one)
    found: list[Interval] = []
    mine, theirs = 0, 0
    while mine < len(one) and theirs < len(other):
        low, high = max(one[mine][0], other[theirs][0]), min(one[mine][1], other[theirs][1])
        if low <= high:
            found.append((low, high))
        if one[mine][1] < other[theirs][1]:
            mine += 1
        else:
            theirs += 1
    return tuple(found)


def _clipped(many: Intervals, few: Intervals) -> Intervals:
    """Return the same, looking only at those of many intervals that others begin or end in."""
    found: Intervals = ()
    for low, high in few:
        begin, end = _touched(many, low, high)
        if begin < end:
            pieces = list(many[begin:end])
            pieces[0] = max(pieces[0][0], low), pieces[0][1]
            pieces[-1] = pieces[-1][0], min(pieces[-1][1], high)
            found += tuple(pieces)
    return found


def without(one: Intervals, other: Intervals) -> Intervals:
    """Return the addresses that are in the first and not in the second."""
    if len(one) > _MANY * len(other):
        return _cut_out(one, other)
    found: list[Interval] = []
    for low, high in one:
        left = low
        at = bisect_left(other, (low, low))
        if at and other[at - 1][1] >= low:
            at -= 1
        while at < len(other) and other[at][0] <= high:
            first, last = other[at]
            if left < first:
                found.append((left, first - 1))
            left = last + 1
            at += 1
        if left <= high:
            found.append((left, high))
    return tuple(found)


def _cut_out(many: Intervals, few: Intervals) -> Intervals:
    """Return the same, looking only at those of many intervals that others begin or end in."""
    found: list[Interval] = []
    past = 0
    for low, high in few:
        begin, end = _touched(many, low, high)
        if begin == end:
            continue
        if begin < past:
            first, _ = found.pop()  # what was left of the same one
        else:
            found += many[past:begin]
            first, _ = many[begin]
        _, last = many[end - 1]
        found += [each for each in ((first, low - 1), (high + 1, last)) if each[0] <= each[1]]
        past = end
    return (*found, *many[past:])


def _touched(many: Intervals, low: int, high: int) -> tuple[int, int]:
    """Return the index of the first interval that has addresses from `low` to `high`, and the end.

    If there is none, both are the same.
    """
    begin = bisect_left(many, (low, low))
    if begin and many[begin - 1][1] >= low:
        begin -= 1
    return begin, bisect_right(many, (high, _BEYOND))


class Membership:
    """The sets of addresses, of several, that contain an address; found without trying each."""

    def __init__(self, sets: Iterable[Intervals]) -> None:
        begin: dict[int, list[int]] = {}
        end: dict[int, list[int]] = {}
        for at, intervals in enumerate(sets):
            for first, last in intervals:
                begin.setdefault(first, []).append(at)
                end.setdefault(last + 1, []).append(at)
        self._firsts = sorted(begin.keys() | end.keys())
        self._held: list[frozenset[int]] = []
        inside: set[int] = set()
        for first in self._firsts:
            inside.difference_update(end.get(first, ()))
            inside.update(begin.get(first, ()))
            self._held.append(frozenset(inside))

    def of(self, number: int) -> frozenset[int]:
        """Return which sets have it, by their places from 0."""
        at = bisect_right(self._firsts, number) - 1
        return self._held[at] if at >= 0 else frozenset()

    def pieces(self) -> Iterator[tuple[Interval, frozenset[int]]]:
        """Yield the intervals that any set contains, in order, and the sets that contain each."""
        for (first, end), held in zip(pairwise(self._firsts), self._held, strict=False):
            if held:
                yield (first, end - 1), held


class Parted(Exception):  # noqa: N818  # no error: a question that has two answers
    """A match is true for some addresses of a region, and false for others.

    Attributes:
        asked: the addresses that the rule matches.
        within: those of the region among them.
        match: the match of iptables that was evaluated, if all else that its rule matches on is
            certainly true; None: it is not, or not known.
    """

    match: object = None

    def __init__(self, region: Region, asked: Intervals, inside: Intervals) -> None:
        super().__init__()
        self.region = region
        self.asked = asked
        self.within = inside

    @cached_property
    def inside(self) -> Region:
        """The part of the region that the rule matches."""
        return self.region.part(self.within)

    @cached_property
    def outside(self) -> Region:
        """The other part."""
        return self.region.part(self.without)

    @property
    def without(self) -> Intervals:
        """The addresses of the other part."""
        return self.region.without(self.asked)


def joined(parts: Iterable[Interval]) -> Intervals:
    """Return intervals in order, merged if they overlap or are adjacent, without empty ones."""
    found: list[Interval] = []
    for low, high in sorted(each for each in parts if each[0] <= each[1]):
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return tuple(found)


def one_each(numbers: Iterable[int]) -> Intervals:
    """Return intervals that contain these addresses, given as numbers, and no others."""
    found: list[Interval] = []
    first = last = -2
    for number in sorted(set(numbers)):
        if number != last + 1:
            found.append((first, last))
            first = number
        last = number
    return (*found[1:], (first, last)) if found else ()


def around(parts: Iterable[Interval], most: int) -> Intervals:
    """Return at most `most` intervals that contain all of `parts`; the smallest gaps are closed."""
    exact = joined(parts)
    if len(exact) <= most:
        return exact
    gaps = [(later[0] - earlier[1], at) for at, (earlier, later) in enumerate(pairwise(exact))]
    cuts = sorted(at for _, at in sorted(gaps)[len(gaps) - most + 1 :])
    firsts, lasts = [0, *(at + 1 for at in cuts)], [*cuts, len(exact) - 1]
    return tuple([(exact[a][0], exact[b][1]) for a, b in zip(firsts, lasts, strict=True)])


def holds(intervals: Intervals, number: int) -> bool:
    """Return whether some intervals contain a number."""
    at = bisect_right(intervals, (number, _BEYOND)) - 1
    return at >= 0 and number <= intervals[at][1]


def meet(few: Intervals, many: Intervals) -> bool:
    """Return whether some address is in both."""
    for low, high in few:
        at = bisect_right(many, (high, _BEYOND)) - 1
        if at >= 0 and many[at][1] >= low:
            return True
    return False


def is_one(intervals: Intervals) -> bool:
    """Return whether some intervals contain exactly one address."""
    return len(intervals) == 1 and intervals[0][0] == intervals[0][1]


def span(network: Network) -> Interval:
    """Return the first and the last address of a network."""
    return int(network.network_address), int(network.broadcast_address)


def everything(version: int) -> Interval:
    """Return the first and the last address of an IP version."""
    return 0, (1 << WIDTHS[version]) - 1


def networks_of(version: int, intervals: Sequence[Interval]) -> Iterator[Network]:
    """Yield the fewest networks that cover some intervals exactly.

    Numbers beyond the last address, as a damaged set may have, are left out.
    """
    highest = everything(version)[1]
    for first, end in intervals:
        last = min(end, highest)
        if first > last:
            continue
        if version == IPV4:
            yield from summarize_address_range(IPv4Address(first), IPv4Address(last))
        else:
            yield from summarize_address_range(IPv6Address(first), IPv6Address(last))
