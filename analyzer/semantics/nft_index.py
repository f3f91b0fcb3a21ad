"""Elements of sets and maps, found by what they hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Final, TypeAlias

from analyzer.model.bits import Bits
from analyzer.model.nft_expressions import Concat, Element, Expression
from analyzer.semantics.nft_fields import number
from analyzer.semantics.nft_held import Held, Read

_Words: TypeAlias = Mapping[str, int] | tuple[Mapping[str, int], ...]

_NONE: Final[Mapping[str, int]] = {}


class Index:
    """The elements of a set: those of a single value by it, and the others."""

    def __init__(self, elements: Sequence[Element]) -> None:
        self.elements = elements
        self._by_value: dict[object, int] | None = None
        self._others: list[Element] = []
        self._words: _Words = _NONE

    def candidates(self, key: Read) -> Iterable[Element]:
        """Return the elements that may cover a key; of one that is known, only a few."""
        known = _known(key.held)
        if known is None:
            return self.elements
        if self._by_value is None or self._words != key.words:
            self._by_value, self._others, self._words = {}, [], key.words
            for at, element in enumerate(self.elements):
                single = _single(element.key, key.words)
                if single is None:
                    self._others.append(element)
                else:
                    self._by_value[single] = at
        at_value = self._by_value.get(known)
        exact = () if at_value is None else (self.elements[at_value],)
        return (*exact, *self._others)


def _known(held: Held) -> object:
    """Return a key as it is looked up, or None where some of it is not known."""
    match held:
        case Bits():
            return held.known
        case str():
            return held
        case tuple():
            parts = tuple(map(_known, held))
            return None if None in parts else parts
        case _:
            return None


def _single(given: Expression, words: _Words) -> object:
    """Return the one value that an element covers, or None."""
    match given:
        case Concat(parts):
            if not isinstance(words, tuple) or len(words) != len(parts):
                return None
            found = tuple(_single(p, w) for p, w in zip(parts, words, strict=True))
            return None if None in found else found
        case bool() | int() | str() | IPv4Address() | IPv6Address():
            return number(given, words) if isinstance(words, Mapping) else None
        case _:
            return None
