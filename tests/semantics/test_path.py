from __future__ import annotations

import pytest

from analyzer.model.iptables.rules import Rule
from analyzer.model.iptables.targets import Reject
from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from analyzer.semantics.path import Path, chance_of
from analyzer.semantics.tree import Chance, Either, Leaf, Tree
from tests.support.odds import bounds
from tests.support.strategies.iptables_rules import HERE

HALF, QUARTER = Dyadic.of(1, 1), Dyadic.of(1, 2)


def leaf(name: str) -> Leaf:
    return Leaf(Reject(name), Packet())


A, B, END = leaf("a"), leaf("b"), leaf("end")


def exact(*shares: Dyadic) -> list[Bounds]:
    return [Bounds(each, each) for each in shares]


def shares(tree: Tree | None, *leaves: Leaf) -> list[Bounds]:
    assert tree is not None
    return [bounds(tree, lambda found, want=each: found.outcome == want.outcome) for each in leaves]  # type: ignore[misc]  # a lambda


def test_a_branch_takes_its_chance_of_what_is_left() -> None:
    path = Path()
    assert not path.branches(HALF, A)
    assert not path.branches(HALF, B)
    assert shares(path.tree(END), A, B, END) == exact(HALF, QUARTER, QUARTER)


def test_nothing_is_left_behind_a_branch_that_is_always_taken() -> None:
    path = Path()
    path.branches(HALF, A)
    assert path.branches(ALWAYS, B)
    assert shares(path.tree(None), A, B) == exact(HALF, HALF)


def test_branches_of_one_draw_share_one_number() -> None:
    path = Path()
    path.branches(HALF, END)
    assert not path.draws([(HALF, A), (QUARTER, B)])
    assert shares(path.tree(END), A, B) == exact(QUARTER, Dyadic.of(1, 3))
    assert path.draws([(HALF, A), (HALF, B)])


def test_an_unknown_match_may_let_a_branch_be_drawn() -> None:
    path = Path()
    path.may_branch(HALF, A, "x")
    assert shares(path.tree(END), A, END) == [Bounds(NEVER, HALF), Bounds(HALF, ALWAYS)]


def test_a_draw_that_may_not_take_place_leaves_all_to_the_rest() -> None:
    path = Path()
    path.may_draw([(QUARTER, A), (QUARTER, B)], "x")
    found = shares(path.tree(END), A, B, END)
    assert found == [Bounds(NEVER, QUARTER), Bounds(NEVER, QUARTER), Bounds(HALF, ALWAYS)]


def test_each_of_several_branches_may_be_taken_or_none() -> None:
    path = Path()
    path.may_take([A, B], "x")
    assert path.tree(END) == Either("x", (A, B, END))


def test_what_was_drawn_before_an_unknown_match_stays_certain() -> None:
    path = Path()
    path.branches(HALF, A)
    path.may_branch(ALWAYS, B, "x")
    found = shares(path.tree(END), A, B, END)
    assert found == [Bounds(HALF, HALF), Bounds(NEVER, HALF), Bounds(NEVER, HALF)]


def test_a_rule_that_matches_stands_behind_the_branches_before_it() -> None:
    rule = Rule((), None, HERE, "-A X")
    path = Path()
    path.branches(HALF, A)
    path.passes(rule)
    tree = path.tree(END)
    assert isinstance(tree, Chance)
    assert [(weight, branch.rules) for weight, branch in tree.branches] == [
        (HALF, ()),
        (HALF, (rule,)),
    ]


def test_rules_that_matched_stand_before_those_of_the_only_branch() -> None:
    first, second = Rule((), None, HERE, "-A X"), Rule((), None, HERE, "-A Y")
    path = Path()
    path.passes(first)
    path.branches(ALWAYS, Leaf(Reject("a"), Packet(), (second,)))
    path.passes(second)
    tree = path.tree(END)
    assert isinstance(tree, Leaf)
    assert tree.rules == (first, second)


@pytest.mark.parametrize("branches", [[(ALWAYS, A)], [(NEVER, B), (ALWAYS, A)]])
def test_where_nothing_is_left_to_chance_there_is_no_fork(
    branches: list[tuple[Dyadic, Tree]],
) -> None:
    assert chance_of(branches) is A
