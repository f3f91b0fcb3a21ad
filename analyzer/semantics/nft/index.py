"""Elements of sets and maps, indexed by key."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address
from typing import Final, TypeAlias

from analyzer.model.bits import WIDTH, Bits
from analyzer.model.intervals import Interval, Intervals, is_one, joined
from analyzer.model.nft.expressions import Concat, Element, Expression, Wildcard
from analyzer.model.nft.written import ElementColumn, WrittenElements
from analyzer.model.region import Region
from analyzer.semantics.nft.covering import interval_of
from analyzer.semantics.nft.fields import number
from analyzer.semantics.nft.values import Evaluated, Value

Words: TypeAlias = Mapping[str, int] | tuple[Mapping[str, int], ...]
#: The operands of each part of all keys, in the order of the elements.
Columns: TypeAlias = Sequence[Sequence[Expression]]

_NONE: Final[Mapping[str, int]] = {}
_MOST: Final = (1 << WIDTH) - 1


class Index:
    """The elements of a set, by those parts of their keys that are known in a lookup."""

    def __init__(self, elements: Sequence[Element]) -> None:
        self.elements = elements
        self._by_parts: dict[object, dict[object, list[int]]] = {}
        self._columns: dict[int, Columns | None] = {}
        self._numbers: dict[tuple[int, int], bool] = {}
        self._intervals: dict[int, list[Interval | None]] = {}
        self._addresses: dict[int, Intervals | None] = {}
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
        held, words = parts_of(key.held, key.words)
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

    def columns(self, of: int) -> Columns | None:
        """Return the keys by their parts; None: one has not `of` parts, or is the wildcard."""
        if of not in self._columns:
            self._columns[of] = self._split(of)
        return self._columns[of]

    def _split(self, of: int) -> Columns | None:
        written = self.elements
        columns = written.columns() if isinstance(written, WrittenElements) else None
        if columns is not None:
            return columns if len(columns) == of else None
        keys = [_parts_of_key(element.key) for element in self.elements]
        if any(len(parts) != of or isinstance(parts[0], Wildcard) for parts in keys):
            return None
        return tuple(zip(*keys, strict=True)) or ((),) * of

    def has_numbers(self, at: int, of: int) -> bool:
        """Return whether one part of each key is a number or a word; there are columns of it."""
        if (at, of) not in self._numbers:
            columns = self.columns(of)
            self._numbers[at, of] = columns is not None and all(map(_is_number, columns[at]))
        return self._numbers[at, of]

    @cached_property
    def wildcards(self) -> Sequence[Element]:
        """The elements of which each covers all keys that no other does; at most one."""
        written = self.elements
        if isinstance(written, WrittenElements) and written.columns() is not None:
            return ()
        return [element for element in written if isinstance(element.key, Wildcard)]

    @cached_property
    def has_values(self) -> bool:
        """Whether the elements are those of a map."""
        written = self.elements
        if isinstance(written, WrittenElements) and written.columns() is not None:
            return written.has_values
        return any(element.value is not None for element in written)

    def intervals(self, at: int, of: int) -> Sequence[Interval | None]:
        """Return the interval that one part of each key covers, for keys of `of` parts."""
        if at not in self._intervals:
            columns = self.columns(of)
            if columns is not None:
                self._intervals[at] = [interval_of(part, _NONE) for part in columns[at]]
            else:
                every = [_parts_of_key(element.key) for element in self.elements]
                self._intervals[at] = [
                    interval_of(parts[at], _NONE) if len(parts) == of else None for parts in every
                ]
        return self._intervals[at]

    def addresses(self, at: int, of: int, candidates: Sequence[int]) -> Intervals | None:
        """Return all addresses that one part of some elements' keys covers; None: not known."""
        every = self.intervals(at, of)
        if len(candidates) < len(every):
            return _addresses([every[place] for place in candidates])
        if at not in self._addresses:
            self._addresses[at] = _addresses(every)
        return self._addresses[at]

    def odd(self, one: int, other: int, of: int) -> frozenset[int]:
        """Return the indexes of elements whose keys do not have one address in both parts."""
        if (one, other) not in self._odd:
            every = self.intervals(one, of), self.intervals(other, of)
            both = enumerate(zip(*every, strict=True))
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
            keys = _parts_of_key(element.key)
            values: tuple[object, ...] | None = None
            if len(keys) == len(words):
                values = tuple(_single(keys[part], words[part]) for part in which)
            found.setdefault(None if values is None or None in values else values, []).append(at)
        return found


def _parts_of_key(key: Expression) -> Sequence[Expression]:
    return key.parts if isinstance(key, Concat) else (key,)


def _addresses(intervals: Sequence[Interval | None]) -> Intervals | None:
    known = [each for each in intervals if each is not None]
    return joined(known) if len(known) == len(intervals) else None


def _is_number(given: Expression) -> bool:
    """Return whether an operand is one number that a packet's value may be, or a word."""
    if isinstance(given, int):
        return 0 <= given <= _MOST
    return isinstance(given, IPv4Address | IPv6Address | str)


def _numbers(column: ElementColumn, words: Mapping[str, int]) -> Sequence[int | None]:
    """Return the numbers of one part of all keys; None for an unknown word."""
    return [words.get(each) if isinstance(each, str) else each for each in column]


def parts_of(held: Value, words: Words) -> tuple[tuple[Value, ...], tuple[Mapping[str, int], ...]]:
    """Return the parts of a key that is looked up, and the words of each."""
    if isinstance(held, tuple):
        return held, words if isinstance(words, tuple) else (_NONE,) * len(held)
    return (held,), (words if isinstance(words, Mapping) else _NONE,)


def _known(held: Value) -> object:
    """Return a value for a lookup, or None if some of it is not known."""
    match held:
        case Bits():
            return held.known
        case Region() if is_one(held.intervals):
            return held.intervals[0][0]
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
