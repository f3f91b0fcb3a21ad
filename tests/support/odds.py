"""Odds of a tree's ends: bounds on any, and by a fold of its own where nothing is unknown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import assert_never

from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from analyzer.semantics.shares import chance_of, shares
from analyzer.semantics.tree import BySource, Chance, Either, Leaf, Outcome, Tree


def bounds(tree: Tree, event: Callable[[Leaf], bool]) -> Bounds:
    """Bound the probability of `event`, whatever the unknown matches decide."""
    return chance_of(shares(tree, event))


def distribution(tree: Tree) -> dict[Outcome, Dyadic]:
    """Return the exact probability of each outcome that is possible; they sum to 1.

    Raises:
        ValueError: something in the tree is unknown.
    """
    found: dict[Outcome, Dyadic] = {}
    for leaf, weight in leaves(tree, ALWAYS):
        if weight:
            found[leaf.outcome] = found.get(leaf.outcome, NEVER) + weight
    assert sum(found.values(), NEVER) == ALWAYS
    return found


def leaves(tree: Tree, weight: Dyadic) -> Iterator[tuple[Leaf, Dyadic]]:
    """Yield each leaf with its probability times `weight`.

    Raises:
        ValueError: something in the tree is unknown.
    """
    match tree:
        case Leaf():
            yield tree, weight
        case Chance(branches):
            for part, child in branches:
                yield from leaves(child, weight * part)
        case Either(because):
            raise ValueError(f"no single distribution: {because}")
        case BySource():
            raise ValueError("no single distribution: rules distinguish sources")
        case _:
            assert_never(tree)
