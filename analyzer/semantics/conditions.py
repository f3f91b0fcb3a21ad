"""Which sources reach each leaf of a tree, and which matches decide that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias, assert_never

from analyzer.model.addresses import Address
from analyzer.model.intervals import Interval, Intervals, Membership, is_one
from analyzer.model.region import Region
from analyzer.model.value import replace
from analyzer.semantics.parts import common, holds, union
from analyzer.semantics.tree import BySource, Chance, Either, Leaf, Tree

#: A part of the sources, and an address that may be counted as in it or not.
Label: TypeAlias = tuple[Intervals, int | None]


def leaves_by_source(tree: Tree) -> list[tuple[Leaf, Intervals | None]]:
    """Return each leaf with the sources from which a packet may get there; None if from any.

    It takes one pass, however many paths lead to a leaf.
    """
    found: list[tuple[Leaf, Intervals | None]] = []
    reached: dict[int, Intervals | None] = {_id(tree): None}
    for node in reversed(_bottom_up(tree)):
        if _id(node) not in reached:
            continue  # from no source
        where = reached[_id(node)]
        if isinstance(node, Leaf):
            found.append((node, where))
            continue
        for child, sources in _children(node):
            there = common(where, sources)
            if there is None or there:
                reached[_id(child)] = union(there, reached.get(_id(child), ()))
    return found


def _id(tree: Tree) -> int:
    # Paths that meet again differ in the rules before, and share their branches.
    return id(tree if isinstance(tree, Leaf) else tree.branches)


def _children(node: Tree) -> Iterator[tuple[Tree, Intervals | None]]:
    match node:
        case Chance(branches):
            yield from ((child, None) for _, child in branches)
        case Either(_, trees):
            yield from ((child, None) for child in trees)
        case BySource(_, parts):
            yield from ((child, region.intervals) for region, child in parts)
        case _:
            pass


def _bottom_up(tree: Tree) -> list[Tree]:
    """Return the nodes, each once and after those below it."""
    found: list[Tree] = []
    seen: set[int] = set()
    rest: list[tuple[Tree, bool]] = [(tree, False)]
    while rest:
        node, is_done = rest.pop()
        if is_done:
            found.append(node)
        elif _id(node) not in seen:
            seen.add(_id(node))
            rest.append((node, True))
            rest += [(child, False) for child, _ in _children(node)]
    return found


def from_source(tree: Tree, address: Address | None, region: Region | None) -> Tree:
    """Return the tree for packets from one address, without the branches by source.

    If the address is None, it is one of `region`, or of all sources.
    """
    done: dict[int, Tree] = {}
    number = None if address is None else int(address)
    for node in _bottom_up(tree):
        match node:
            case Leaf():
                made: Tree = node
            case Chance(drawn):
                made = replace(node, branches=tuple([(w, done[_id(each)]) for w, each in drawn]))
            case Either(_, trees):
                made = replace(node, branches=tuple([done[_id(each)] for each in trees]))
            case BySource(_, parts):
                there = [
                    done[_id(each)]
                    for where, each in parts
                    if (
                        holds(where.intervals, number)
                        if number is not None or region is None
                        else where.common(region.intervals)
                    )
                ]
                made = there[0] if len(there) == 1 else Either("where it comes from", tuple(there))
            case _:
                assert_never(node)
        done[_id(node)] = made
    return done[_id(tree)]


def questions(tree: Tree) -> set[Intervals]:
    """Return the sets of sources that a tree's rules match on."""
    return {node.asked for node in _bottom_up(tree) if isinstance(node, BySource)}


def telling(
    asked: Iterable[Intervals], region: Intervals, labels: Iterable[Label]
) -> set[Intervals]:
    """Return those of some matches that distinguish sources of a region, and maybe some more.

    Each of `labels` has a part of the sources, of which some may have another outcome than the
    rest, and an address that does not count for it.
    """
    asked, labels = set(asked), list(labels)
    alone = {each for each in asked if is_one(each)}
    found = asked - alone
    if not alone:
        return found
    numbers = {each[0][0] for each in alone}
    pieces, within = _pieces(region, frozenset(found))
    there = [(number, piece) for number in numbers if 0 in (piece := pieces.of(number))]
    if not there:
        return found  # none is of the region
    labelled = Membership(where for where, _ in labels)
    usual: dict[frozenset[int], int | None] = {}
    for number, piece in there:
        if piece not in usual:
            every = (n for first, last in within[piece] for n in range(first, last + 1))
            usual[piece] = next((n for n in every if n not in numbers), None)
        other = usual[piece]
        # Without a usual address each of them may have another outcome.
        differing = () if other is None else labelled.of(number) ^ labelled.of(other)
        if other is None or any(labels[at][1] != number for at in differing):
            found.add(((number, number),))
    return found


@lru_cache(maxsize=8)
def _pieces(
    region: Intervals, sets: frozenset[Intervals]
) -> tuple[Membership, Mapping[frozenset[int], Sequence[Interval]]]:
    """Return which of a region and some sets have an address, and where they are the same.

    They are the same for most frontends of a dump, and a region may have a thousand intervals.
    """
    pieces = Membership([region, *sorted(sets)])
    found: dict[frozenset[int], list[Interval]] = {}
    for interval, piece in pieces.pieces():
        found.setdefault(piece, []).append(interval)
    return pieces, found
