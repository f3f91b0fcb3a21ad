"""Which elements of a set or map of nft cover a key.

The elements of a set are alike, and thousands of them share few protocols and ports. So keys are
compared part by part: an operand that many of them have is compared once, and a part of the packet
that is not known at all with none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import TypeAlias

from analyzer.model.bits import ANY
from analyzer.model.nft.expressions import Expression, Wildcard
from analyzer.model.region import Parted, Region
from analyzer.model.ternary import Ternary
from analyzer.semantics.nft.covering import covers
from analyzer.semantics.nft.index import Index, parts_of
from analyzer.semantics.nft.values import Evaluated, Value

#: Returns whether an operand covers a part of a key.
_Covers: TypeAlias = Callable[[Expression], Ternary]


def covering(
    key: Evaluated, index: Index, candidates: Sequence[int]
) -> Iterator[tuple[int, Ternary]]:
    """Yield the indexes of those elements that cover a key or may, and which; not of the wildcard.

    Raises:
        Parted: one covers a part of a region, and covers or may cover the rest of the key.
    """
    if has_columns(key, index):
        yield from by_columns(key, index, candidates)
        return
    for at in candidates:
        element = index.element(at)
        if not isinstance(element.key, Wildcard):
            known = covers(element.key, key.held, key.words)
            if known is not Ternary.FALSE:
                yield at, known


def has_columns(key: Evaluated, index: Index) -> bool:
    """Return whether all elements have keys of as many parts as a key; none is the wildcard."""
    if not isinstance(key.held, tuple):
        return not isinstance(key.words, tuple) and index.columns(1) is not None
    is_by_part = isinstance(key.words, tuple) and len(key.words) == len(key.held)
    return is_by_part and index.columns(len(key.held)) is not None


def by_columns(
    key: Evaluated, index: Index, candidates: Sequence[int], but: Collection[int] = ()
) -> Iterator[tuple[int, Ternary]]:
    """Yield the same of elements with columns; the parts `but` of the key are not compared.

    Raises:
        Parted: as above.
    """
    result = Ternary.TRUE
    compared: list[tuple[Sequence[Expression], _Covers]] = []
    held, words = parts_of(key.held, key.words)
    for at, column in enumerate(index.columns(len(held)) or ()):
        if at in but:
            continue
        if held[at] == ANY and index.has_numbers(at, len(held)):
            result = Ternary.UNKNOWN
        else:
            compared.append((column, _once(held[at], words[at])))
    for at in candidates:
        known = _compared(compared, at)
        if known is not Ternary.FALSE:
            yield at, known & result


def _compared(compared: Sequence[tuple[Sequence[Expression], _Covers]], at: int) -> Ternary:
    result, parted = Ternary.TRUE, None
    for column, covers_part in compared:
        try:
            known = covers_part(column[at])
        except Parted as by:
            parted = by  # which matters only where all else is covered
            continue
        if known is Ternary.FALSE:
            return known
        result &= known
    if parted is not None:
        raise parted
    return result


def _once(held: Value, words: Mapping[str, int]) -> _Covers:
    """Return a function that compares a part of a key with an operand, with each only once."""
    if isinstance(held, Region):  # of addresses, most are different
        region = held
        return lambda given: (
            region.is_at(given) if type(given) is int else covers(given, region, words)
        )
    return cache(lambda given: covers(given, held, words))
