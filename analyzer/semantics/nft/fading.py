"""nft sets whose content is not fixed: elements have a timeout, or rules update the set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from analyzer.model.intervals import Intervals, joined, one_each
from analyzer.model.nft.expressions import Element
from analyzer.model.nft.ruleset import Set
from analyzer.model.nft.written import WrittenElements
from analyzer.semantics.nft.covering import interval_of

_NO_WORDS: Final[Mapping[str, int]] = {}
#: Most networks of a set with elements that may have expired that split sources: with more, finding
#: the one of a source takes long, and shows only that the set may contain it.
MOST_FADING: Final = 300


def changes(held: Set) -> bool:
    """Return whether a set may have other elements than the dump shows."""
    return bool({"dynamic", "timeout"} & set(held.flags)) or held.timeout is not None


def lasting(held: Set) -> Sequence[Element]:
    """Return the elements of a set that stay; others may have gone since the dump was taken."""
    return [
        each
        for each in held.elements
        if each.expires is None and not (held.timeout if each.timeout is None else each.timeout)
    ]


def networks_of(elements: Sequence[Element]) -> Intervals | None:
    """Return all addresses of a set of addresses; None: it is a map, or holds others."""
    numbers = elements.numbers() if isinstance(elements, WrittenElements) else None
    if numbers is not None:
        return one_each(numbers)
    each = [None if e.value is not None else interval_of(e.key, _NO_WORDS) for e in elements]
    return None if None in each else joined([one for one in each if one is not None])
