"""What holds for each part of a packet's sources after rules have split them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, TypeVar

from analyzer.model.addresses import Address
from analyzer.model.region import Intervals, Region, common_of, joined

T = TypeVar("T")
R = TypeVar("R")

#: Matches on sources that made a difference.
Asked: TypeAlias = frozenset[Intervals]
#: Parts of the sources, each with what holds for it; None: all sources. No two parts overlap.
Parts: TypeAlias = tuple[tuple[Intervals | None, T], ...]


def of_all(held: T) -> Parts[T]:
    """Return a single part for all sources."""
    return ((None, held),)


def merged(branches: Iterable[tuple[Region, Parts[T]]]) -> Parts[T]:
    """Return the parts of several regions together; parts with the same value are merged."""
    found: dict[int, tuple[list[Intervals], T]] = {}
    for region, parts in branches:
        for intervals, held in parts:
            # The branches below may be shared by sources that never get there.
            there = common(region.intervals, intervals)
            if there:
                where, _ = found.setdefault(id(held), ([], held))
                where.append(there)
    if len(found) == 1:
        ((_, held),) = found.values()
        return of_all(held)
    return tuple([(joined(e for each in w for e in each), held) for w, held in found.values()])


def combined(given: Sequence[Parts[T]], of: Callable[[list[T]], R]) -> Parts[R]:
    """Return the parts that any of `given` distinguishes, each with `of` applied to its values."""
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
    """Return what holds for an address; if it is None, all that may hold."""
    number = None if address is None else int(address)
    return [held for where, held in parts if holds(where, number)]


def holds(where: Intervals | None, number: int | None) -> bool:
    """Return whether an address may be in a part."""
    return where is None or number is None or any(a <= number <= b for a, b in where)


def common(one: Intervals | None, other: Intervals | None) -> Intervals | None:
    """Return the intersection of two parts; None is all sources."""
    if one is None or other is None:
        return other if one is None else one
    return common_of(one, other)


def union(one: Intervals | None, other: Intervals | None) -> Intervals | None:
    """Return the union of two parts; None is all sources."""
    return None if one is None or other is None else joined((*one, *other))
