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

from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address

from analyzer.model.addresses import IPV4
from analyzer.model.intervals import (
    Interval,
    Intervals,
    joined,
    without,
)
from analyzer.model.ternary import Ternary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.model.addresses import Address


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
