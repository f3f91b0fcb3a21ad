"""Looks up a key among the elements of a set or map of nft.

Source: Linux, net/netfilter/nft_lookup.c.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from analyzer.model.devices import Devices
from analyzer.model.intervals import common_of
from analyzer.model.region import Parted, Region
from analyzer.model.ternary import Ternary
from analyzer.semantics.nft.covered import covering
from analyzer.semantics.nft.covering import are_all_named
from analyzer.semantics.nft.found import Found, Hit, drawn_from, some
from analyzer.semantics.nft.index import Index
from analyzer.semantics.nft.pairs import PairLookup, pair_of
from analyzer.semantics.nft.values import Draw, Evaluated


def lookup(key: Evaluated, index: Index) -> Found:
    """Return what a lookup of a key finds among indexed elements.

    Raises:
        Parted: it finds one for some addresses of a region, and another or none for the rest.
    """
    if isinstance(key.held, Draw):
        return drawn_from(key, key.held, index)
    candidates = index.candidates(key)
    twice = pair_of(key.held)
    if twice is not None:
        together = PairLookup(key, index, *twice)
        if together.is_apart:
            candidates = together.of_others(candidates)
        else:
            known = together.of_itself()
            if known is not None:
                return some(key, known)
    if not _may_cover(key, index, candidates):
        return Found(key.applies, (), is_sure=False)
    found = covering(key, index, candidates)
    if not (index.has_values or index.wildcards or isinstance(key.held, Devices)):
        # Of a set it does not matter which element it is.
        return some(key, reduce(or_, (known for _, known in found), Ternary.FALSE))
    certain: list[Hit] = []
    hits: list[Hit] = []
    for at, known in found:
        (certain if known is Ternary.TRUE else hits).append(Hit(index.element(at)))
    if certain:
        # More than one: the kernel refuses that, so the dump was edited.
        return Found(key.applies, tuple(certain), is_sure=True)
    rest = tuple(map(Hit, index.wildcards))
    is_sure = bool(rest) or are_all_named(key.held, [hit.element.key for hit in hits])
    return Found(key.applies, (*hits, *rest), is_sure=is_sure)


def misses(address: Evaluated, index: Index, at: int, of: int) -> bool:
    """Return whether no element has one of many addresses in part `at` of its key, of `of` parts.

    False if `address` is a single one, which an index finds.
    """
    if address.applies is not Ternary.TRUE or not isinstance(address.held, Region):
        return False
    covered = index.addresses(at, of, range(len(index.elements)))
    return covered is not None and not common_of(covered, address.held.intervals)


def _may_cover(key: Evaluated, index: Index, candidates: Sequence[int]) -> bool:
    """Return whether one of some elements may cover a key that has a region for a part.

    Raises:
        Parted: some do so for a part of the region, and none for the rest.
    """
    parts = key.held if isinstance(key.held, tuple) else (key.held,)
    parted: Parted | None = None
    for at, region in enumerate(parts):
        if not isinstance(region, Region):
            continue
        covered = index.addresses(at, len(parts), candidates)
        if covered is None:
            continue
        try:
            known = region.is_within(covered)
        except Parted as by:
            parted = by  # which matters only where all else may be covered
            continue
        if known is Ternary.FALSE:
            return False
    if parted is not None:
        raise parted
    return True
