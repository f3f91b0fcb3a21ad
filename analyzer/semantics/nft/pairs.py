"""Sets whose keys combine source and destination.

kube-proxy has a set for hairpin flows, with each endpoint's address twice in a key. Matching its
elements one by one would split off every endpoint, and evaluate each separately. Instead, packets
whose source is their destination (`Itself`) are evaluated apart from all others (`Apart`): such an
element contains none of the others, and all of the former are found at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from analyzer.model.nft.expressions import Concat, Expression
from analyzer.model.region import Apart, Interval, Intervals, Itself, Region, joined
from analyzer.model.ternary import Ternary
from analyzer.semantics.nft.covering import covers, interval_of
from analyzer.semantics.nft.index import Index
from analyzer.semantics.nft.values import Evaluated, Value

_NONE: Final[Mapping[str, int]] = {}


def pair_of(held: Value) -> tuple[int, int] | None:
    """Return where in a key a packet's source and destination are, if both are regions.

    Also None if it is not known how they are related.
    """
    if not isinstance(held, tuple):
        return None
    regions = [(at, part) for at, part in enumerate(held) if isinstance(part, Region)]
    for at, one in regions:
        for behind, other in regions:
            if at != behind and _go_together(one, other):
                return at, behind
    return None


def _go_together(one: Region, other: Region) -> bool:
    if isinstance(one, Itself):
        return one is other
    return isinstance(one.whole, Apart) and other.whole is one.whole.destinations


class PairLookup:
    """A lookup by source and destination, at two places of its key."""

    def __init__(self, key: Evaluated, index: Index, one: int, other: int) -> None:
        assert isinstance(key.held, tuple)
        self._held = key.held
        self._words = key.words
        self._index = index
        self._one, self._other = one, other

    @property
    def is_apart(self) -> bool:
        """Whether the packet's destination is never its source."""
        return not isinstance(self._held[self._one], Itself)

    def of_others(self, candidates: Sequence[int]) -> Sequence[int]:
        """Return those elements that may contain a packet that is not sent back to its source."""
        odd = self._index.odd(self._one, self._other, self._intervals)
        if not odd:
            return ()
        return [at for at in candidates if at in odd]

    def of_itself(self, candidates: Sequence[int]) -> Ternary | None:
        """Return whether the set contains a packet sent back to its source; None for other sets.

        Raises:
            Parted: it contains some such packets, and not others.
        """
        region = self._held[self._one]
        assert isinstance(region, Itself)
        found = self._twice(candidates)
        if found is None:
            return None
        certain, possible = found
        if region.is_within(certain) is Ternary.TRUE:
            return Ternary.TRUE
        return region.is_within(possible) & Ternary.UNKNOWN

    def _twice(self, candidates: Sequence[int]) -> tuple[Intervals, Intervals] | None:
        """Return the addresses that elements contain twice, and those that they may."""
        places = self._one, self._other
        rest = tuple(part for at, part in enumerate(self._held) if at not in places)
        key = *places, rest
        if key not in self._index.twice:
            self._index.twice[key] = self._held_twice(candidates)
        return self._index.twice[key]

    def _held_twice(self, candidates: Sequence[int]) -> tuple[Intervals, Intervals] | None:
        if not isinstance(self._words, tuple):
            return None
        ones, others = self._intervals(self._one), self._intervals(self._other)
        certain: list[Interval] = []
        possible: list[Interval] = []
        for at in candidates:
            element = self._index.elements[at]
            one, other = ones[at], others[at]
            if element.value is not None or not isinstance(element.key, Concat):
                return None
            if one is None or other is None or len(element.key.parts) != len(self._held):
                return None
            low, high = max(one[0], other[0]), min(one[1], other[1])
            rest = self._rest_of(element.key.parts) if low <= high else Ternary.FALSE
            if rest is not Ternary.FALSE:
                possible.append((low, high))
            if rest is Ternary.TRUE:
                certain.append((low, high))
        return joined(certain), joined(possible)

    def _rest_of(self, parts: Sequence[Expression]) -> Ternary:
        """Return whether an element covers all of the key except for the two addresses."""
        assert isinstance(self._words, tuple)
        found = Ternary.TRUE
        for at, (given, held, words) in enumerate(zip(parts, self._held, self._words, strict=True)):
            if at not in {self._one, self._other}:
                found &= covers(given, held, words)
        return found

    def _intervals(self, at: int) -> Sequence[Interval | None]:
        return self._index.intervals(at, len(self._held), _addresses)


def _addresses(part: Expression) -> Interval | None:
    return interval_of(part, _NONE)
