"""One table of iptables: its walk is that of the naive interpreter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Final

from analyzer.model.iptables.rules import Rule, Table
from analyzer.model.iptables.targets import SetMark
from analyzer.model.packet import Packet
from analyzer.semantics.assumed import Assumed
from analyzer.semantics.iptables.traverse import Traversal
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import (
    AnyRule,
    BySource,
    Chance,
    Delivered,
    Either,
    FellThrough,
    Leaf,
    PolicyDrop,
    Tree,
    Unanswered,
    Unresolved,
)
from tests.support.naive import table as naive
from tests.support.odds import bounds
from tests.support.strategies.iptables_walkable import DEAD

#: The chain where packets enter.
START: Final = "A"


def walk(
    made: Table, packet: Packet | None = None, assumed: Mapping[str, str] | None = None
) -> Tree:
    given = None if assumed is None else Assumed(assumed)
    situation = Situation(local_addresses=frozenset(), assumed=given)
    return Traversal(made, situation).tree(START, packet or Packet())


def is_dead(leaf: Leaf) -> bool:
    return leaf.outcome == DEAD


def leads_on(rule: AnyRule) -> bool:
    assert isinstance(rule, Rule)
    return rule.target is not None and not isinstance(rule.target, SetMark)


def paths(
    tree: Tree, weight: Fraction = Fraction(1), path: tuple[str, ...] = ()
) -> Iterator[tuple[naive.End, Fraction]]:
    """Give each way through a tree of nothing unknown, with the rules on it."""
    path = (*path, *(str(rule.location) for rule in tree.rules if leads_on(rule)))
    match tree:
        case Leaf(outcome, packet):
            assert not packet.mark.unknown
            assert not isinstance(outcome, Unresolved | PolicyDrop | Delivered | Unanswered)
            target = None if isinstance(outcome, FellThrough) else outcome
            yield naive.End(target, packet.mark.value, path), weight
        case Chance(branches):
            for part, child in branches:
                yield from paths(child, weight * part.as_fraction(), path)
        case Either() | BySource():
            raise AssertionError(tree)


def agrees_with_the_naive_interpreter(
    made: Table,
    packet: Packet | None = None,
    assumed: Mapping[str, str] | None = None,
    facts: Mapping[str, bool] | None = None,
) -> None:
    found: dict[naive.End, Fraction] = {}
    for end, weight in paths(walk(made, packet, assumed)):
        found[end] = found.get(end, Fraction(0)) + weight
    assert found == naive.distribution(made, START, facts)


def bounds_are_the_extremes_of_an_adversary(made: Table) -> None:
    found = bounds(walk(made), is_dead)
    assert (found.lower.as_fraction(), found.upper.as_fraction()) == naive.extremes(
        made, START, lambda end: end.target == DEAD
    )
