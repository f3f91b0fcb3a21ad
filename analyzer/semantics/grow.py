"""Replacing the leaves of a tree by other trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from analyzer.model.probability import Dyadic
from analyzer.model.region import Region
from analyzer.semantics.tree import BySource, Chance, Either, Leaf, Tree, after_all


class Grown:
    """Replaces each leaf by the result of `grow`, preceded by the leaf's rules.

    Branches that share what is below them still do, and unchanged parts are not copied. `spend` is
    called with the number of branches of each node that is visited. `staying` has the branches, by
    identity, of nodes known to stay unchanged, and is extended.
    """

    def __init__(
        self,
        grow: Callable[[Leaf], Tree],
        spend: Callable[[int], None] | None = None,
        staying: set[int] | None = None,
    ) -> None:
        self._grow = grow
        self._spend = spend
        self._staying = set() if staying is None else staying
        # By identity: the tree keeps its nodes alive, and comparing them would take as long. Paths
        # that meet again differ in the rules before, and share their branches.
        self._leaves: dict[int, Tree] = {}
        self._drawn: dict[int, tuple[tuple[Dyadic, Tree], ...]] = {}
        self._either: dict[int, tuple[Tree, ...]] = {}
        self._by_source: dict[int, tuple[tuple[Region, Tree], ...]] = {}

    def of(self, tree: Tree) -> Tree:
        """Return the result for a tree, or for a part of it."""
        match tree:
            case Leaf():
                return self._leaf(tree)
            case Chance(drawn):
                if id(drawn) in self._staying:
                    return tree
                chances = self._drawn.get(id(drawn))
                if chances is None:
                    chances = self._drawn[id(drawn)] = self._chances(drawn)
                return tree if chances is drawn else Chance(chances, tree.rules)
            case Either(_, either):
                if id(either) in self._staying:
                    return tree
                grown = self._either.get(id(either))
                if grown is None:
                    grown = self._either[id(either)] = self._branches(either)
                    if grown is either:
                        self._staying.add(id(either))
                return tree if grown is either else Either(tree.because, grown, tree.rules)
            case BySource(_, parts):
                if id(parts) in self._staying:
                    return tree
                told = self._by_source.get(id(parts))
                if told is None:
                    told = self._by_source[id(parts)] = self._parts(parts)
                return tree if told is parts else BySource(tree.asked, told, tree.rules)
            case _:
                assert_never(tree)

    def _leaf(self, leaf: Leaf) -> Tree:
        found = self._leaves.get(id(leaf))
        if found is None:
            found = self._grow(leaf)
            if found is not leaf and leaf.rules:
                found = after_all(leaf.rules, found)
            self._leaves[id(leaf)] = found
        return found

    def _chances(self, drawn: tuple[tuple[Dyadic, Tree], ...]) -> tuple[tuple[Dyadic, Tree], ...]:
        trees = tuple([tree for _, tree in drawn])
        grown = self._branches(trees)
        if grown is trees:
            self._staying.add(id(drawn))
            return drawn
        return tuple([(weight, new) for (weight, _), new in zip(drawn, grown, strict=True)])

    def _parts(self, parts: tuple[tuple[Region, Tree], ...]) -> tuple[tuple[Region, Tree], ...]:
        trees = tuple([tree for _, tree in parts])
        grown = self._branches(trees)
        if grown is trees:
            self._staying.add(id(parts))
            return parts
        return tuple([(region, new) for (region, _), new in zip(parts, grown, strict=True)])

    def _branches(self, trees: tuple[Tree, ...]) -> tuple[Tree, ...]:
        if self._spend is not None:
            self._spend(len(trees))
        grown = tuple([self.of(tree) for tree in trees])
        if any(new is not old for new, old in zip(grown, trees, strict=True)):
            return grown
        return trees
