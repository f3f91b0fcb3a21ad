"""What a failure costs, by sums over nodes, is what `loss` finds for the same dead nodes."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from analyzer.failure.costs import cost, singles
from analyzer.failure.incidence import BITS, rank
from analyzer.failure.loss import LossState
from tests.support.incidences import NODES, Placed, names, placed, some_nodes

ALL_SOURCES = range(len(NODES))


def near(number: int, truth: Fraction) -> bool:
    """Tell whether a number to compare is what it stands for."""
    return abs(Fraction(number, 1 << BITS) - truth) < Fraction(1, 1 << (BITS - 16))


@given(placed(), some_nodes)
def test_a_cost_is_what_enumeration_finds(given_: Placed, dead: set[int]) -> None:
    found = cost(given_.nodes, dead)
    truth = given_.losses(names(dead))
    judged = [each for each in truth if each.state is not LossState.NO_ENDPOINTS]
    assert near(found.upper, sum((e.worst.upper.as_fraction() for e in judged), Fraction()))
    assert near(found.lower, sum((e.worst.lower.as_fraction() for e in judged), Fraction()))
    assert near(found.worst, max([e.worst.upper.as_fraction() for e in judged], default=Fraction()))
    states = [each.state for each in truth]
    assert [at for at, state in enumerate(states) if state is LossState.SILENCED] == [
        *found.silenced
    ]
    assert states.count(LossState.DEGRADED) == found.degraded
    unknown = [each for each in truth if each.state is LossState.UNKNOWN and each.worst.upper]
    assert len(unknown) == found.unknown
    assert given_.nodes.counted == len(judged)


@given(placed(), some_nodes)
def test_the_worst_loss_is_exact_and_of_the_route_that_is_named(
    given_: Placed, dead: set[int]
) -> None:
    found = cost(given_.nodes, dead)
    worst = max([each.worst.upper.as_fraction() for each in given_.losses(names(dead))])
    if found.row is None:
        assert worst == 0
        return
    bounds = found.row.loss(dead)
    assert bounds.upper.as_fraction() == worst
    of = given_.losses(names(dead))[found.row.service]
    (route,) = [each for each in of.routes if each.route is found.row.route]
    assert route.loss == bounds


@given(placed())
def test_what_one_node_costs_is_the_same_in_one_pass(given_: Placed) -> None:
    found = singles(given_.nodes)
    for group in ALL_SOURCES:
        one, other = found.cost(group), cost(given_.nodes, (group,))
        assert (rank(one.worst), rank(one.upper), rank(one.lower)) == (
            rank(other.worst),
            rank(other.upper),
            rank(other.lower),
        )
        assert (one.silenced, one.degraded, one.unknown) == (
            other.silenced,
            other.degraded,
            other.unknown,
        )


@given(placed(), some_nodes, some_nodes)
def test_more_dead_nodes_never_cost_less(given_: Placed, some: set[int], more: set[int]) -> None:
    less, greater = (cost(given_.nodes, each) for each in (some, some | more))
    assert rank(less.worst) <= rank(greater.worst)
    assert rank(less.upper) <= rank(greater.upper)
    assert set(less.silenced) <= set(greater.silenced)


@given(placed(known=True))
def test_with_nothing_dead_nothing_is_lost_and_with_all_dead_all_is(given_: Placed) -> None:
    nodes = given_.nodes
    assert cost(nodes, ()).upper == 0
    everything = cost(nodes, ALL_SOURCES)
    for service, rows in enumerate(nodes.services):
        if rows:
            assert service in everything.silenced
        for row in rows:
            kept = sum((s.share.lower.as_fraction() for s in row.route.shares), Fraction())
            assert row.loss(ALL_SOURCES).lower.as_fraction() == kept


@given(placed(), st.sets(st.sampled_from(ALL_SOURCES), min_size=2, max_size=2))
def test_the_sum_of_two_costs_is_bounded_by_what_both_cost_alone(
    given_: Placed, dead: set[int]
) -> None:
    found = singles(given_.nodes)
    bound = sum(found.upper[each] for each in dead) - found.base + found.excess
    assert rank(cost(given_.nodes, dead).upper) <= rank(bound)
