"""Trees with something put in the place of their leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from analyzer.model.value import replace
from analyzer.semantics.tree import Chance, Either, Leaf, Tree


class Grown:
    """Puts what `grow` makes of each leaf in its place, before it the leaf's rules.

    Branches that share what is below them still do, and what stays as it is is not made anew.
    `spend` is told of the branches of each node that is looked at. `staying` holds nodes, by
    identity, that stay as they are, and is given more of them.
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
        # By identity: the tree keeps its nodes alive, and to compare them would take as long.
        self._done: dict[int, Tree] = {}

    def of(self, tree: Tree) -> Tree:
        """Return what becomes of a tree, or of a part of it."""
        if id(tree) in self._staying:
            return tree
        found = self._done.get(id(tree))
        if found is None:
            found = self._done[id(tree)] = self._made(tree)
            if found is tree:
                self._staying.add(id(tree))
        return found

    def _made(self, tree: Tree) -> Tree:
        match tree:
            case Leaf():
                behind = self._grow(tree)
                if behind is tree or not tree.rules:
                    return behind
                return replace(behind, rules=(*tree.rules, *behind.rules))
            case Chance(drawn):
                self._spends(len(drawn))
                chances = tuple([(weight, self.of(child)) for weight, child in drawn])
                same = all(new is old for (_, new), (_, old) in zip(chances, drawn, strict=True))
                return tree if same else replace(tree, branches=chances)
            case Either(_, either):
                self._spends(len(either))
                grown = tuple([self.of(child) for child in either])
                same = all(new is old for new, old in zip(grown, either, strict=True))
                return tree if same else replace(tree, branches=grown)
            case _:
                assert_never(tree)

    def _spends(self, branches: int) -> None:
        if self._spend is not None:
            self._spend(branches)
