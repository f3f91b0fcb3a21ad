"""Builds a tree while a chain is traversed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from analyzer.model.probability import ALWAYS, NEVER, Dyadic
from analyzer.semantics.tree import AnyRule, Chance, Either, Leaf, Tree, after_all


class Path:
    """The part of a tree that one traversal of one chain has built, with an open end."""

    def __init__(self) -> None:
        self._around: list[Callable[[Tree], Tree]] = []
        #: Rules that matched since the node above, then branches, of which one may be drawn.
        self._passed: list[AnyRule] = []
        self._branches: list[tuple[Dyadic, Tree]] = []
        self._left = ALWAYS
        #: Rules in a row that may end the traversal, how, and how many with that outcome follow.
        self._row: list[tuple[AnyRule, Leaf, int]] = []

    @property
    def is_empty(self) -> bool:
        """Return whether nothing was added yet."""
        return not (self._around or self._passed or self._branches or self._row)

    def branches(self, chance: Dyadic, taken: Tree) -> bool:
        """Add a branch that is drawn with `chance`; return whether nothing else is left."""
        self._close_row()
        self._branches.append((self._left * chance, taken))
        self._left = self._left * ~chance
        return not self._left

    def draws(self, branches: Sequence[tuple[Dyadic, Tree]]) -> bool:
        """Add the branches of one draw, which may select none; return whether nothing is left."""
        self._close_row()
        before = self._left
        self._branches += [(before * chance, taken) for chance, taken in branches]
        drawn = reduce(Dyadic.__add__, (chance for chance, _ in branches), NEVER)
        self._left = before * ~drawn
        return not self._left

    def may_draw(self, branches: Sequence[tuple[Dyadic, Tree]], because: str) -> None:
        """Add the branches of one draw, which may take place or not."""
        drawn = reduce(Dyadic.__add__, (chance for chance, _ in branches), NEVER)
        self._close()
        self._around.append(
            lambda rest: Either(because, (chance_of([*branches, (~drawn, rest)]), rest))
        )

    def may_take(self, branches: Sequence[Tree], because: str) -> None:
        """Add branches one of which may be taken."""
        self._close()
        self._around.append(lambda rest: Either(because, (*branches, rest)))

    def may_branch(self, chance: Dyadic, taken: Tree, because: str) -> None:
        """Add a branch that an unknown match may allow, to be drawn with `chance`."""
        self._close()
        self._around.append(
            lambda rest: (
                rest
                if rest is taken
                else Either(because, (chance_of([(chance, taken), (~chance, rest)]), rest))
            )
        )

    def may_end(self, rule: AnyRule, taken: Tree, others: int = 0) -> None:
        """Add what follows if a rule matches of which that is not known.

        Of rules in a row that end the traversal, many with one outcome become one fork; `others` of
        them follow this one.
        """
        if not isinstance(taken, Leaf) or len(taken.rules) != 1:
            self.may_branch(ALWAYS, taken, because_of(rule))
            return
        if self._row and taken.packet is not self._row[-1][1].packet:
            self._close_row()
        if not self._row:
            self._close()
        self._row.append((rule, taken, others))

    def passes(self, *rules: AnyRule) -> None:
        """Record rules that certainly match and let the traversal continue."""
        if self._branches or self._row:
            self._close()
        self._passed += rules

    def _close_row(self) -> None:
        if not self._row:
            return
        row, self._row = self._row, []
        trees = [(rule, taken) for rule, taken, _ in row]
        if len(row) > 1 or row[0][2]:
            from analyzer.semantics.in_a_row import as_few  # few dumps need it

            trees = as_few(row)
        for rule, taken in trees:
            self.may_branch(ALWAYS, taken, because_of(rule))

    def _close(self) -> None:
        self._close_row()
        if self._passed:
            rules, self._passed = tuple(self._passed), []
            self._around.append(lambda rest: after_all(rules, rest))
        if self._branches:
            branches, left = self._branches, self._left
            self._around.append(lambda rest: chance_of([*branches, (left, rest)]))
            self._branches, self._left = [], ALWAYS

    def tree(self, rest: Tree | None) -> Tree:
        """Return the tree, with `rest` at its end; None if no probability is left."""
        self._close_row()
        if rest is not None and not self._branches:
            tree = rest
        else:
            left = [] if rest is None else [(self._left, rest)]
            tree = chance_of([*self._branches, *left])
        if self._passed:
            tree = after_all(self._passed, tree)
        for around in reversed(self._around):
            tree = around(tree)
        return tree


def because_of(rule: AnyRule) -> str:
    """Return the reason for a fork: it is not known whether a rule matches."""
    return f"{rule.location}: {rule.raw}"


def chance_of(branches: list[tuple[Dyadic, Tree]]) -> Tree:
    """Join branches, without a node if nothing is left to chance."""
    kept = tuple((weight, tree) for weight, tree in branches if weight)
    match kept:
        case ((_, only),):
            return only
        case _:
            return Chance(kept)
