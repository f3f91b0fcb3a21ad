"""Sets whose keys combine source and destination.

kube-proxy has a set for hairpin flows, with each endpoint's address twice in a key. Matching its
elements one by one would split off every endpoint, and evaluate each separately. Instead, packets
whose source is their destination (`Itself`) are evaluated apart from all others (`Apart`): such an
element contains none of the others, and all of the former are found at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.model.bits import ANY
from analyzer.model.intervals import Interval, Intervals, joined
from analyzer.model.region import Apart, Itself, Region
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.nft.covered import by_columns, has_columns
from analyzer.semantics.nft.index import Index
from analyzer.semantics.nft.values import Evaluated, Value


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
        self._key = key
        self._held = key.held
        self._index = index
        self._one, self._other = one, other

    @property
    def is_apart(self) -> bool:
        """Whether the packet's destination is never its source."""
        return not isinstance(self._held[self._one], Itself)

    def of_others(self, candidates: Sequence[int]) -> Sequence[int]:
        """Return those elements that may contain a packet that is not sent back to its source."""
        odd = self._index.odd(self._one, self._other, len(self._held))
        if not odd:
            return ()
        return [at for at in candidates if at in odd]

    def of_itself(self) -> Ternary | None:
        """Return whether the set contains a packet sent back to its source; None for other sets.

        Raises:
            Parted: it contains some such packets, and not others.
        """
        region = self._held[self._one]
        assert isinstance(region, Itself)
        found = self._twice()
        if found is None:
            return None
        certain, possible = found
        if region.is_within(certain) is Ternary.TRUE:
            return Ternary.TRUE
        return region.is_within(possible) & Ternary.UNKNOWN

    def _twice(self) -> tuple[Intervals, Intervals] | None:
        """Return the addresses that elements contain twice, and those that they may."""
        places = self._one, self._other
        rest = tuple(ANY if at in places else part for at, part in enumerate(self._held))
        if (places, rest) not in self._index.twice:
            self._index.twice[places, rest] = self._held_twice(replace(self._key, held=rest))
        return self._index.twice[places, rest]

    def _held_twice(self, rest: Evaluated) -> tuple[Intervals, Intervals] | None:
        if self._index.has_values or not has_columns(rest, self._index):
            return None
        places = self._one, self._other
        ones, others = (self._index.intervals(at, len(self._held)) for at in places)
        certain: list[Interval] = []
        possible: list[Interval] = []
        candidates = self._index.candidates(rest)
        for at, known in by_columns(rest, self._index, candidates, places):
            one, other = ones[at], others[at]
            if one is None or other is None:
                return None
            low, high = max(one[0], other[0]), min(one[1], other[1])
            if low <= high:
                possible.append((low, high))
                if known is Ternary.TRUE:
                    certain.append((low, high))
        return joined(certain), joined(possible)
