"""What holds for each part of a packet's sources after rules have split them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Generic, TypeAlias, TypeVar

from analyzer.model.addresses import Address
from analyzer.model.intervals import Interval, Intervals, Membership, common_of, joined
from analyzer.model.intervals import holds as is_in

T = TypeVar("T")
R = TypeVar("R")

#: Parts of a division of sources, of which each is paired with each of another one.
_FEW: Final = 8

#: Matches on sources that made a difference.
MatchedSources: TypeAlias = frozenset[Intervals]
#: Parts of the sources, each with what holds for it; None: all sources. No two parts overlap.
Parts: TypeAlias = tuple[tuple[Intervals | None, T], ...]


def of_all(held: T) -> Parts[T]:
    """Return a single part for all sources."""
    return ((None, held),)


def merged(branches: Iterable[tuple[Intervals, Parts[T]]]) -> Parts[T]:
    """Return the parts of several sets of sources; parts with the same value are merged."""
    found: dict[int, tuple[list[Intervals], T]] = {}
    for sources, parts in branches:
        for intervals, held in parts:
            # The branches below may be shared by sources that never get there.
            there = common(sources, intervals)
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
    if max(map(len, given)) > _FEW and all(w is not None for p in given if p[1:] for w, _ in p):
        return tuple([(where, of(held)) for where, held in _crossed(given)])
    found: list[tuple[Intervals | None, list[T]]] = [(None, [])]
    for parts in given:
        found = [
            (both, [*before, held])
            for where, before in found
            for intervals, held in parts
            if (both := common(where, intervals)) is None or both
        ]
    return tuple([(where, of(held)) for where, held in found])


def _crossed(given: Sequence[Parts[T]]) -> Iterator[tuple[Intervals, list[T]]]:
    """Yield what each of several divisions has, and where, without pairing all of their parts."""
    whole = [len(parts) == 1 and parts[0][0] is None for parts in given]
    sets = [
        (number, place, where)
        for number, parts in enumerate(given)
        if not whole[number]
        for place, (where, _) in enumerate(parts)
        if where is not None
    ]
    found: dict[tuple[int, ...], list[Interval]] = {}
    for interval, held in Membership(where for *_, where in sets).pieces():
        places = dict(sets[at][:2] for at in held)
        if len(places) == len(given) - sum(whole):
            key = tuple([places.get(number, 0) for number in range(len(given))])
            found.setdefault(key, []).append(interval)
    for key in sorted(found):
        told = [parts[place][1] for parts, place in zip(given, key, strict=True)]
        yield joined(found[key]), told


class Lookup(Generic[T]):
    """What holds for an address, found without trying each part."""

    def __init__(self, parts: Parts[T]) -> None:
        #: Of all sources.
        self._of_all = [held for where, held in parts if where is None]
        told = [(span, held) for where, held in parts if where is not None for span in where]
        told.sort(key=lambda each: each[0])
        self._spans = tuple([span for span, _ in told])
        self._held = [held for _, held in told]

    def at(self, number: int) -> Sequence[T]:
        """Return what holds for an address, as `at` does."""
        place = bisect_right(self._spans, number, key=lambda span: span[0]) - 1
        if place < 0 or number > self._spans[place][1]:
            return self._of_all
        return [*self._of_all, self._held[place]]


def at(parts: Parts[T], address: Address | None) -> list[T]:
    """Return what holds for an address; if it is None, all that may hold."""
    number = None if address is None else int(address)
    return [held for where, held in parts if holds(where, number)]


def holds(where: Intervals | None, number: int | None) -> bool:
    """Return whether an address may be in a part."""
    return where is None or number is None or is_in(where, number)


def common(one: Intervals | None, other: Intervals | None) -> Intervals | None:
    """Return the intersection of two parts; None is all sources."""
    if one is None or other is None:
        return other if one is None else one
    return common_of(one, other)


def union(one: Intervals | None, other: Intervals | None) -> Intervals | None:
    """Return the union of two parts; None is all sources."""
    if one == () or other == ():
        return other if one == () else one
    return None if one is None or other is None else joined((*one, *other))
