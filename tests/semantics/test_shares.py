from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.iptables.rules import Rule
from analyzer.model.iptables.targets import Accept, Drop
from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from analyzer.semantics.shares import shares
from analyzer.semantics.tree import (
    BySource,
    Chance,
    Either,
    FellThrough,
    Leaf,
    Outcome,
    Tree,
    Unresolved,
    after,
)
from tests.support.odds import bounds, distribution
from tests.support.strategies.iptables_rules import HERE

KEYS: list[Outcome] = [Accept(), Drop(), FellThrough()]
HALF = Dyadic.of(1, 1)


def rule(name: str) -> Rule:
    return Rule((), None, HERE, name)


def leaf(outcome: Outcome, *names: str) -> Leaf:
    return Leaf(outcome, Packet(), tuple(map(rule, names)))


def chance(weights: list[int], trees: list[Tree], rules: tuple[Rule, ...] = ()) -> Chance:
    """Branches of 2**-1, 2**-2, ... and the rest for the last, in the order of `weights`."""
    shares_ = [Dyadic.of(1, n + 1) for n in range(len(trees) - 1)]
    shares_.append(Dyadic.of(1, len(trees) - 1))
    return Chance(tuple((shares_[w], t) for w, t in zip(weights, trees, strict=True)), rules)


def joined(children: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    some = st.lists(children, min_size=1, max_size=3)
    return st.one_of(
        some.flatmap(
            lambda trees: st.permutations(range(len(trees))).map(lambda w: chance(w, trees))
        ),
        some.map(lambda trees: Either("unknown", tuple(trees))),
    )


leaves = st.sampled_from(KEYS).map(leaf)
trees = st.recursive(leaves | st.just(leaf(Unresolved("x"))), joined, max_leaves=6)
known_trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, min_size=1, max_size=3).flatmap(
        lambda ts: st.permutations(range(len(ts))).map(lambda w: chance(w, ts))
    ),
    max_leaves=8,
)


def worlds(tree: Tree) -> Iterator[dict[Outcome, Fraction]]:
    """Every distribution that a tree allows, each branch of an `Either` taken for certain."""
    match tree:
        case Leaf(Unresolved()):
            for key in (*KEYS, Unresolved("none of them")):
                yield {key: Fraction(1)}
        case Leaf(outcome):
            yield {outcome: Fraction(1)}
        case Either(_, branches):
            for branch in branches:
                yield from worlds(branch)
        case BySource():
            raise AssertionError(tree)
        case Chance(branches):
            sums: list[dict[Outcome, Fraction]] = [{}]
            for weight, branch in branches:
                sums = [
                    {
                        key: total.get(key, Fraction(0)) + weight.as_fraction() * each.get(key, 0)
                        for key in total | each
                    }
                    for total in sums
                    for each in worlds(branch)
                ]
            yield from sums


@given(trees)
def test_shares_are_the_extremes_of_all_worlds(tree: Tree) -> None:
    found = shares(tree, lambda each: each.outcome)
    each = list(worlds(tree))
    for key in KEYS:
        b = found.get(key) or Bounds(NEVER, found.unresolved)
        assert b.lower.as_fraction() == min(world.get(key, 0) for world in each)
        assert b.upper.as_fraction() == max(world.get(key, 0) for world in each)


@given(trees, st.sets(st.sampled_from(KEYS)))
def test_bounds_of_an_event_are_the_extremes_of_all_worlds(tree: Tree, event: set[Outcome]) -> None:
    found = bounds(tree, lambda each: each.outcome in event)
    each = [sum((w.get(key, Fraction(0)) for key in event), Fraction(0)) for w in worlds(tree)]
    if event:
        assert (found.lower.as_fraction(), found.upper.as_fraction()) == (min(each), max(each))


@given(known_trees)
def test_a_tree_of_nothing_unknown_is_exact(tree: Tree) -> None:
    found = shares(tree, lambda each: each.outcome)
    assert found.is_exact
    assert {k: b.lower for k, b in found.items()} == distribution(tree)


@pytest.mark.parametrize(
    ("tree", "exact"),
    [
        (leaf(Accept()), True),
        (Either("x", (leaf(Accept()), leaf(Accept()))), True),
        (Either("x", (leaf(Accept()), leaf(Drop()))), False),
        (leaf(Unresolved("x")), False),
        (Chance(((HALF, leaf(Accept())), (HALF, leaf(Unresolved("x"))))), False),
    ],
)
def test_shares_are_exact_where_the_unknown_decides_nothing(tree: Tree, *, exact: bool) -> None:
    assert shares(tree, lambda each: each.outcome).is_exact is exact


def test_what_an_unresolved_leaf_may_add_stops_at_one() -> None:
    tree = Either("x", (leaf(Accept()), leaf(Unresolved("y"))))
    assert shares(tree, lambda each: each.outcome)[Accept()] == Bounds(NEVER, ALWAYS)


def test_what_an_unresolved_leaf_may_add_is_counted_once() -> None:
    """Accept takes half for certain, so half at most is left for Drop."""
    open_half = Either("x", (leaf(Unresolved("y")), leaf(Drop())))
    tree = Chance(((HALF, leaf(Accept())), (HALF, open_half)))
    assert shares(tree, lambda each: each.outcome)[Drop()] == Bounds(NEVER, HALF)


def test_no_single_distribution_is_made_of_an_unknown_branch() -> None:
    with pytest.raises(ValueError, match="no single distribution: -m u32"):
        distribution(Either("-m u32", (leaf(Accept()), leaf(Drop()))))


@given(trees)
def test_a_rule_before_a_tree_stands_first(tree: Tree) -> None:
    named = after(rule("second"), tree)
    assert after(rule("first"), named).rules == (rule("first"), rule("second"))
