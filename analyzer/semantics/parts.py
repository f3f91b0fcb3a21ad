"""What holds for each part of a packet's sources after rules have split them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, TypeVar

from analyzer.model.addresses import Address
from analyzer.model.region import Intervals, Region, common_of, joined

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
            # The branches below may be shared by sources that never come there.
            there = common(region.intervals, intervals)
            if there:
                where, _ = found.setdefault(id(held), ([], held))
                where.append(there)
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
            (both, [*before, held])
            for where, before in found
            for intervals, held in parts
            if (both := common(where, intervals)) is None or both
        ]
    return tuple([(where, of(held)) for where, held in found])


def at(parts: Parts[T], address: Address | None) -> list[T]:
    """Return what holds of an address; of one that is not known, all that may."""
    number = None if address is None else int(address)
    return [held for where, held in parts if holds(where, number)]


def holds(where: Intervals | None, number: int | None) -> bool:
    """Tell whether an address may be in a part."""
    return where is None or number is None or any(a <= number <= b for a, b in where)


def common(one: Intervals | None, other: Intervals | None) -> Intervals | None:
    """Return what is in both of two parts; None: all sources are."""
    if one is None or other is None:
        return other if one is None else one
    return common_of(one, other)


def union(one: Intervals | None, other: Intervals | None) -> Intervals | None:
    """Return what is in either of two parts; None: all sources are."""
    return None if one is None or other is None else joined((*one, *other))
