from __future__ import annotations

from analyzer.model.iptables.rules import Rule
from analyzer.model.iptables.targets import Drop
from analyzer.model.packet import Packet
from analyzer.model.probability import Dyadic
from analyzer.semantics.grow import Grown
from analyzer.semantics.tree import Chance, Either, FellThrough, Leaf, Tree
from tests.support.strategies.iptables_rules import HERE

HALF = Dyadic.of(1, 1)
RULE, BEHIND = Rule((), None, HERE, "-A X"), Rule((), Drop(), HERE, "-A Y -j DROP")
LEFT, DROPPED = Leaf(FellThrough(), Packet(), (RULE,)), Leaf(Drop(), Packet())


def dropping(leaf: Leaf) -> Tree:
    left = isinstance(leaf.outcome, FellThrough)
    return Leaf(Drop(), leaf.packet, (BEHIND,)) if left else leaf


def test_a_leaf_is_replaced_behind_its_own_rules() -> None:
    assert Grown(dropping).of(LEFT) == Leaf(Drop(), Packet(), (RULE, BEHIND))


def test_forks_keep_their_weights_and_reasons() -> None:
    grown = Grown(dropping).of(LEFT)
    fork = Chance(((HALF, LEFT), (HALF, DROPPED)), (RULE,))
    assert Grown(dropping).of(fork) == Chance(((HALF, grown), (HALF, DROPPED)), (RULE,))
    either = Either("x", (DROPPED, LEFT))
    assert Grown(dropping).of(either) == Either("x", (DROPPED, grown))


def test_what_stays_as_it_is_is_not_made_anew() -> None:
    tree = Either("x", (Chance(((HALF, DROPPED), (HALF, DROPPED))), DROPPED))
    assert Grown(dropping).of(tree) is tree


def test_ways_that_share_a_tree_still_share_it() -> None:
    shared = Either("x", (LEFT, DROPPED))
    found = Grown(dropping).of(Chance(((HALF, shared), (HALF, shared))))
    assert isinstance(found, Chance)
    (_, one), (_, other) = found.branches
    assert isinstance(one, Either)
    assert isinstance(other, Either)
    assert one.branches is other.branches


def test_branches_that_are_looked_at_are_counted_once() -> None:
    spent: list[int] = []
    shared = Either("x", (LEFT, DROPPED, DROPPED))
    Grown(dropping, spent.append).of(Chance(((HALF, shared), (HALF, shared))))
    assert sorted(spent) == [2, 3]
