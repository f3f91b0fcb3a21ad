"""The result of a lookup in an nft set or map."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from itertools import pairwise
from typing import Final

from analyzer.model.nft.expressions import Element, Wildcard
from analyzer.model.probability import NEVER, Dyadic
from analyzer.model.ternary import Ternary
from analyzer.model.value import value
from analyzer.semantics.nft.covering import interval_of
from analyzer.semantics.nft.index import Index
from analyzer.semantics.nft.values import Draw, Evaluated

_NONE: Final[Mapping[str, int]] = {}


@value
class Hit:
    """An element that a look-up may find.

    Attributes:
        chance: of a random draw, how likely; None: the packet decides.
    """

    element: Element
    chance: Dyadic | None = None


@value
class Found:
    """What a look-up finds: one of `hits`, or nothing.

    Attributes:
        applies: whether there was something to look up.
        is_sure: whether it certainly finds something; of a random draw the chances say it.
    """

    applies: Ternary
    hits: tuple[Hit, ...]
    is_sure: bool


def some(key: Evaluated, known: Ternary) -> Found:
    """Return what a look-up finds in a set of which it does not matter which element it is."""
    hits = () if known is Ternary.FALSE else (Hit(Element(key=Wildcard())),)
    return Found(key.applies, hits, is_sure=known is Ternary.TRUE)


def drawn_from(key: Evaluated, draw: Draw, index: Index) -> Found:
    """Return what a look-up of a drawn number finds."""
    hits: list[Hit] = []
    words = key.words if isinstance(key.words, Mapping) else _NONE
    first, last = draw.offset, draw.offset + draw.modulus - 1
    covered = 0
    taken: list[tuple[int, int]] = []
    rest: Element | None = None
    for element in index.elements:
        if isinstance(element.key, Wildcard):
            rest = element
            continue
        interval = interval_of(element.key, words)
        if interval is None:
            return Found(key.applies, tuple(map(Hit, index.elements)), is_sure=False)
        low, high = max(interval[0], first), min(interval[1], last)
        if low <= high:
            hits.append(Hit(element, draw.chance(low, high) if draw.is_random else None))
            covered += high - low + 1
            taken.append((low, high))
    taken.sort()
    if any(low <= high for (_, high), (low, _) in pairwise(taken)):
        # The kernel rejects that, so the dump has been edited.
        return Found(key.applies, tuple(map(Hit, index.elements)), is_sure=False)
    if rest is not None and covered < draw.modulus:
        left = ~reduce(Dyadic.__add__, (h.chance or NEVER for h in hits), NEVER)
        hits.append(Hit(rest, left if draw.is_random else None))
        covered = draw.modulus
    return Found(key.applies, tuple(hits), is_sure=covered == draw.modulus)
