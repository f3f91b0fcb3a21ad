"""Bounds on many keys at once, combined from those of a tree's branches.

Theory of operation
===================

A node of a tree names few keys that the largest of its branches does not. So its bounds are kept as
a layer over those of that branch: separate bounds for the keys that other branches name, and one
map for all the rest. Two branches that lead to the same tree share what lies below their layers.
Layers are resolved once, at the end, so that the work grows with the tree, and not with the keys
times the depth.

A map takes a lower bound x to ``low * x``, and an upper one to the greatest of some ``factor * x +
offset``: weighted sums, the greatest of several, and compositions of maps are such maps again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from analyzer.model.probability import ALWAYS, NEVER, Dyadic
from analyzer.model.value import value

#: A lower and an upper bound.
LowerAndUpper: TypeAlias = tuple[Dyadic, Dyadic]
#: ``factor * x + offset``.
_Line: TypeAlias = tuple[Dyadic, Dyadic]

#: Layers below which two branches are not searched for what they share.
_MOST_LAYERS: Final = 16
#: Most lines of a map; beyond that, keys get separate bounds.
_MOST_LINES: Final = 8


@value
class _Map:
    low: Dyadic
    lines: tuple[_Line, ...]

    def of(self, pair: LowerAndUpper) -> LowerAndUpper:
        """Return the image of bounds."""
        lower, upper = pair
        return self.low * lower, max(a * upper + b for a, b in self.lines)

    def behind(self, inner: _Map) -> _Map:
        """Return the composition: first `inner`, then this."""
        lines = [(a * c, a * d + b) for a, b in self.lines for c, d in inner.lines]
        return _Map(self.low * inner.low, _upmost(lines))


_SAME: Final = _Map(ALWAYS, ((ALWAYS, NEVER),))


def _constant(upper: Dyadic) -> _Map:
    """Return the map for a key that a branch does not name."""
    return _Map(NEVER, ((NEVER, upper),))


def _upmost(lines: Iterable[_Line]) -> tuple[_Line, ...]:
    """Return the lines that are not below any other one between 0 and 1."""
    found: list[_Line] = []
    for a, b in lines:
        if not any(b <= d and a + b <= c + d for c, d in found):
            found = [(c, d) for c, d in found if not (d <= b and c + d <= a + b)]
            found.append((a, b))
    return tuple(found)


class Mix(ABC):
    """How two branches are combined."""

    @abstractmethod
    def pair(self, one: LowerAndUpper, other: LowerAndUpper) -> LowerAndUpper:
        """Return the bounds of a key from its bounds in the branches."""

    @abstractmethod
    def map(self, one: _Map, other: _Map) -> _Map:
        """Return the same for maps."""


class UnknownMix(Mix):
    """One of them is taken, but it is not known which, nor how often."""

    def pair(self, one: LowerAndUpper, other: LowerAndUpper) -> LowerAndUpper:
        """Return the bounds of a key from its bounds in the branches."""
        return min(one[0], other[0]), max(one[1], other[1])

    def map(self, one: _Map, other: _Map) -> _Map:
        """Return the same for maps."""
        return _Map(min(one.low, other.low), _upmost((*one.lines, *other.lines)))


class WeightedMix(Mix):
    """Each is taken with its weight."""

    def __init__(self, one: Dyadic, other: Dyadic) -> None:
        self._weights = one, other

    def pair(self, one: LowerAndUpper, other: LowerAndUpper) -> LowerAndUpper:
        """Return the bounds of a key from its bounds in the branches."""
        v, w = self._weights
        return v * one[0] + w * other[0], v * one[1] + w * other[1]

    def map(self, one: _Map, other: _Map) -> _Map:
        """Return the same for maps."""
        v, w = self._weights
        lines = [(v * a + w * c, v * b + w * d) for a, b in one.lines for c, d in other.lines]
        return _Map(v * one.low + w * other.low, _upmost(lines))


UNKNOWN: Final = UnknownMix()


class Sums:
    """Bounds by key, which is a number: a layer over those of `below`.

    Attributes:
        own: the bounds of keys that the layer itself names.
        through: the map for the bounds of other keys that `below` names.
        other: the upper bound of every key that is not named; its lower one is 0.
        keys: the keys that are named, a bit for each.
    """

    __slots__ = ("_all", "below", "keys", "other", "own", "through")

    def __init__(
        self,
        own: Mapping[int, LowerAndUpper],
        other: Dyadic,
        keys: int,
        below: Sums | None = None,
        through: _Map = _SAME,
    ) -> None:
        self.own = own
        self.below = below
        self.through = through
        self.other = other
        self.keys = keys
        self._all: Mapping[int, LowerAndUpper] | None = own if below is None else None

    @classmethod
    def leaves(cls, drawn: Iterable[tuple[int | None, Dyadic]]) -> Sums:
        """Return the bounds of a draw between keys, each with its weight; None is any key."""
        own: dict[int, Dyadic] = {}
        open_ = NEVER
        for key, weight in drawn:
            if key is None:
                open_ = open_ + weight
            else:
                own[key] = own.get(key, NEVER) + weight
        keys = 0
        for key in own:
            keys |= 1 << key
        return cls({key: (low, low + open_) for key, low in own.items()}, open_, keys)

    @classmethod
    def anything(cls, keys: int) -> Sums:
        """Return the bounds if nothing is known except that some keys are named, a bit for each."""
        named = [at for at in range(keys.bit_length()) if keys >> at & 1]
        return cls(dict.fromkeys(named, (NEVER, ALWAYS)), ALWAYS, keys)

    @property
    def size(self) -> int:
        """The number of keys that are named."""
        return self.keys.bit_count()

    def all(self) -> Mapping[int, LowerAndUpper]:
        """Return the bounds of all keys that are named."""
        if self._all is None:
            found: dict[int, LowerAndUpper] = {}
            layer, through = self, _SAME
            while True:
                for key, pair in layer.own.items():
                    if key not in found:
                        found[key] = pair if through is _SAME else through.of(pair)
                if layer.below is None:
                    break
                through = through.behind(layer.through)
                layer = layer.below
            self._all = found
        return self._all

    def get(self, key: int) -> LowerAndUpper:
        """Return the bounds of one key."""
        if not self.keys >> key & 1:
            return NEVER, self.other
        if self._all is not None:
            return self._all[key]
        layer, maps = self, []
        while key not in layer.own:
            assert layer.below is not None  # `keys` says that one of them names it
            maps.append(layer.through)
            layer = layer.below
        pair = layer.own[key]
        for through in reversed(maps):
            pair = through.of(pair)
        return pair

    def mixed(self, other: Sums, mix: Mix) -> Sums:
        """Return the combined bounds of two branches."""
        keys = self.keys | other.keys
        open_ = mix.pair((NEVER, self.other), (NEVER, other.other))[1]
        layered = self._over_the_same(other, mix)
        if layered is not None:
            named, below, through = layered
        elif self.size <= 2 * other.size and other.size <= 2 * self.size:
            # A layer would hide most of what is below it.
            named, below, through = [*{**self.all(), **other.all()}], None, _SAME
        elif self.size > other.size:
            named, below = [*other.all()], self
            through = mix.map(_SAME, _constant(other.other))
        else:
            named, below = [*self.all()], other
            through = mix.map(_constant(self.other), _SAME)
        own = {key: mix.pair(self.get(key), other.get(key)) for key in named}
        if below is not None and not own and through == _SAME:
            return below
        return Sums(own, open_, keys, below, through)

    def told(self) -> Hashable:
        """Return a key that is equal for equal bounds."""
        return tuple(self.own.items()), id(self.below), self.through, self.other

    def _over_the_same(self, other: Sums, mix: Mix) -> tuple[list[int], Sums, _Map] | None:
        """Return the keys above, what is below both, and its map; None if they share too little."""
        mine, theirs = self._layers(), other._layers()
        places = {id(layer): at for at, layer in enumerate(mine)}
        there = next((at for at, layer in enumerate(theirs) if id(layer) in places), None)
        if there is None:
            return None
        layer = theirs[there]
        if 2 * layer.size < max(self.size, other.size):
            return None
        here = places[id(layer)]
        both = mix.map(_through(mine[:here]), _through(theirs[:there]))
        above = [key for each in (*theirs[:there], *mine[:here]) for key in each.own]
        return None if len(both.lines) > _MOST_LINES else (list(dict.fromkeys(above)), layer, both)

    def _layers(self) -> list[Sums]:
        """Return the top layers."""
        found = [self]
        while found[-1].below is not None and len(found) < _MOST_LAYERS:
            found.append(found[-1].below)
        return found


def _through(layers: Iterable[Sums]) -> _Map:
    """Return the map through some layers."""
    through = _SAME
    for layer in layers:
        through = through.behind(layer.through)
    return through


def drawn(parts: Sequence[tuple[Dyadic, Sums]]) -> Sums:
    """Return the bounds of branches, each drawn with its weight; these sum to 1."""
    (weight, found), *rest = parts
    for each, sums in rest:
        found, weight = found.mixed(sums, WeightedMix(weight, each)), ALWAYS
    return found
