"""Sets of addresses of one IP version, as intervals of numbers in order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, summarize_address_range
from itertools import pairwise

from analyzer.model.addresses import IPV4, WIDTHS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.model.addresses import Network

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
