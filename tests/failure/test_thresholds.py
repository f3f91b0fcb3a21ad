"""A threshold is broken just where some set of so many nodes breaks that of `loss`."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from analyzer.failure.incidence import RouteRow
from analyzer.failure.route_loss import RouteLoss
from analyzer.failure.thresholds import exceeding, exceeding_any
from tests.support.effort import examples
from tests.support.incidences import NODES, Placed, names, placed

LIMITS = st.one_of(
    st.sampled_from([Fraction(n, d) for d in (1, 2, 4) for n in range(d + 1)]),
    st.fractions(0, 1, max_denominator=100),
)


def is_broken(given_: Placed, groups: tuple[int, ...], most: Fraction) -> bool:
    losses = given_.losses(names(groups))
    return any(route.is_lost_beyond(most) for loss in losses for route in loss.routes)


@examples(60, 2_000)
@given(placed(), LIMITS, st.integers(1, 5))
def test_the_worst_set_for_some_route_decides(given_: Placed, most: Fraction, size: int) -> None:
    sets = [*itertools.combinations(range(len(NODES)), size)]
    broken = [each for each in sets if is_broken(given_, each, most)]
    found = exceeding_any(given_.nodes, size, most)
    assert (found is not None) is bool(broken)
    if found is not None:
        assert len(found.groups) <= size
        assert any(route.is_lost_beyond(most) for route in _route(given_, found.groups, found.row))


def _route(given_: Placed, groups: Collection[int], row: RouteRow) -> list[RouteLoss]:
    loss = given_.losses(names(groups))[row.service]
    return [each for each in loss.routes if each.route is row.route]


@given(placed(), LIMITS, st.sets(st.sampled_from(range(5)), min_size=1))
def test_one_failure_breaks_it_just_where_loss_does(
    given_: Placed, most: Fraction, dead: set[int]
) -> None:
    found = exceeding(given_.nodes, dead, most)
    assert (found is not None) is is_broken(given_, tuple(dead), most)
    if found is not None:
        assert any(route.is_lost_beyond(most) for route in _route(given_, dead, found.row))


def test_more_nodes_than_there_are_cannot_fail() -> None:
    nothing = Placed((), {})
    assert exceeding_any(nothing.nodes, len(NODES) + 1, Fraction(0)) is None
