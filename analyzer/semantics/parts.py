"""What holds of each part of the sources of a packet, where rules have told them apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, TypeVar

from analyzer.model.addresses import Address
from analyzer.model.region import Intervals, Region, joined

T = TypeVar("T")
R = TypeVar("R")

#: What rules asked of sources that made a difference.
Asked: TypeAlias = frozenset[Intervals]
#: Each part of the sources, and what holds of it; None: of all of them. No two parts overlap.
Parts: TypeAlias = tuple[tuple[Intervals | None, T], ...]


def of_all(held: T) -> Parts[T]:
    """Return what holds of all sources."""
    return ((None, held),)


def merged(branches: Iterable[tuple[Region, Parts[T]]]) -> Parts[T]:
    """Return what holds of the parts of several regions, those of one and the same as one."""
    found: dict[int, tuple[list[Intervals], T]] = {}
    for region, parts in branches:
        for intervals, held in parts:
            where, _ = found.setdefault(id(held), ([], held))
            where.append(region.intervals if intervals is None else intervals)
    if len(found) == 1:
        ((_, held),) = found.values()
        return of_all(held)
    return tuple([(joined(e for each in w for e in each), held) for w, held in found.values()])


def combined(given: Sequence[Parts[T]], of: Callable[[list[T]], R]) -> Parts[R]:
    """Return what holds of each part that some of `given` tells apart, made `of` all that hold."""
    if all(len(parts) == 1 for parts in given):
        return of_all(of([parts[0][1] for parts in given]))
    found: list[tuple[Intervals | None, list[T]]] = [(None, [])]
    for parts in given:
        found = [
            (common, [*before, held])
            for where, before in found
            for intervals, held in parts
            if (common := _common(where, intervals)) is None or common
        ]
    return tuple([(where, of(held)) for where, held in found])


def at(parts: Parts[T], address: Address | None) -> list[T]:
    """Return what holds of an address; of one that is not known, all that may."""
    number = None if address is None else int(address)
    return [held for where, held in parts if holds(where, number)]


def holds(where: Intervals | None, number: int | None) -> bool:
    """Tell whether an address may be in a part."""
    return where is None or number is None or any(a <= number <= b for a, b in where)


def _common(one: Intervals | None, other: Intervals | None) -> Intervals | None:
    if one is None or other is None:
        return other if one is None else one
    found: list[tuple[int, int]] = []
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
