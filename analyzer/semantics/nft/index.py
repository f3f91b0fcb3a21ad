"""Elements of sets and maps, indexed by key."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Final, TypeAlias

from analyzer.model.bits import Bits
from analyzer.model.nft.expressions import Concat, Element, Expression
from analyzer.model.nft.written import ElementColumn, WrittenElements
from analyzer.model.region import Interval, Intervals
from analyzer.semantics.nft.fields import number
from analyzer.semantics.nft.values import Evaluated, Value

_Words: TypeAlias = Mapping[str, int] | tuple[Mapping[str, int], ...]

_NONE: Final[Mapping[str, int]] = {}


class Index:
    """The elements of a set, by those parts of their keys that are known in a lookup."""

    def __init__(self, elements: Sequence[Element]) -> None:
        self.elements = elements
        self._by_parts: dict[object, dict[object, list[int]]] = {}
        self._intervals: dict[int, list[Interval | None]] = {}
        self._odd: dict[tuple[int, int], frozenset[int]] = {}
        #: Addresses that keys contain twice, certainly and possibly, by the rest of the lookup's
        #: key.
        self.twice: dict[Hashable, tuple[Intervals, Intervals] | None] = {}

    def element(self, at: int) -> Element:
        """Return one element."""
        held = self.elements
        return held.one(at) if isinstance(held, WrittenElements) else held[at]

    def candidates(self, key: Evaluated) -> Sequence[int]:
        """Return the indexes of the elements that may cover a key, in their order."""
        held, words = _parts(key.held, key.words)
        known = tuple(map(_known, held))
        which = tuple(at for at, part in enumerate(known) if part is not None)
        if not which:
            return range(len(self.elements))
        index = self._by_parts.get(which)
        if index is None:
            index = self._by_parts[which] = self._indexed(which, words)
        exact = index.get(tuple(known[at] for at in which), [])
        others = index.get(None, [])
        # Mostly one of them is empty.
        return sorted({*exact, *others}) if others else exact

    def intervals(
        self, at: int, of: int, interval: Callable[[Expression], Interval | None]
    ) -> Sequence[Interval | None]:
        """Return the interval that one part of each key covers, for keys of `of` parts."""
        if at not in self._intervals:
            every = [e.key.parts if isinstance(e.key, Concat) else (e.key,) for e in self.elements]
            found = [interval(parts[at]) if len(parts) == of else None for parts in every]
            self._intervals[at] = found
        return self._intervals[at]

    def odd(
        self, one: int, other: int, every: Callable[[int], Sequence[Interval | None]]
    ) -> frozenset[int]:
        """Return the indexes of elements whose keys do not have one address in both parts."""
        if (one, other) not in self._odd:
            both = enumerate(zip(every(one), every(other), strict=True))
            pairs = {at for at, (a, b) in both if a is not None and a == b and a[0] == a[1]}
            self._odd[one, other] = frozenset(range(len(self.elements))) - pairs
        return self._odd[one, other]

    def _indexed(
        self, which: tuple[int, ...], words: Sequence[Mapping[str, int]]
    ) -> dict[object, list[int]]:
        """Return the indexes of elements by the values of some parts; under None, the others."""
        found: dict[object, list[int]] = {}
        columns = self.elements.columns() if isinstance(self.elements, WrittenElements) else None
        if columns is not None and len(columns) == len(words):
            numbers = [_numbers(columns[part], words[part]) for part in which]
            for at, values_of in enumerate(zip(*numbers, strict=True)):
                found.setdefault(None if None in values_of else values_of, []).append(at)
            return found
        for at, element in enumerate(self.elements):
            keys = element.key.parts if isinstance(element.key, Concat) else (element.key,)
            values: tuple[object, ...] | None = None
            if len(keys) == len(words):
                values = tuple(_single(keys[part], words[part]) for part in which)
            found.setdefault(None if values is None or None in values else values, []).append(at)
        return found


def _numbers(column: ElementColumn, words: Mapping[str, int]) -> Sequence[int | None]:
    """Return the numbers of one part of all keys; None for an unknown word."""
    return [words.get(each) if isinstance(each, str) else each for each in column]


def _parts(held: Value, words: _Words) -> tuple[tuple[Value, ...], tuple[Mapping[str, int], ...]]:
    if isinstance(held, tuple):
        return held, words if isinstance(words, tuple) else (_NONE,) * len(held)
    return (held,), (words if isinstance(words, Mapping) else _NONE,)


def _known(held: Value) -> object:
    """Return a value for a lookup, or None if some of it is not known."""
    match held:
        case Bits():
            return held.known
        case str():
            return held
        case _:
            return None


def _single(given: Expression, words: Mapping[str, int]) -> object:
    """Return the one number that a part of an element's key covers, or None."""
    match given:
        case bool() | int() | str() | IPv4Address() | IPv6Address():
            return number(given, words)
        case _:
            return None
