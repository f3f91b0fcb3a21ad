"""The smallest sets that silence a Service are those that trying every set finds."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from hypothesis import given

from analyzer.failure.loss import LossState, ServiceLoss
from analyzer.failure.route_loss import RouteLoss
from analyzer.failure.smallest import rows_that_count, survival, survives
from analyzer.model.probability import NEVER
from analyzer.model.value import replace
from tests.support.incidences import NODES, Placed, names, placed

SETS = [
    each for size in range(1, len(NODES) + 1) for each in itertools.combinations(range(5), size)
]


def counted(loss: ServiceLoss) -> Iterable[RouteLoss]:
    return [route for route in loss.routes if route.leads]


def is_gone(route: RouteLoss) -> bool:
    return not route.survives.upper and bool(route.loss.lower)


def may_be_gone(route: RouteLoss) -> bool:
    return route.survives.lower == NEVER and bool(route.loss.upper)


@given(placed())
def test_smallest_sets_are_those_that_trying_every_set_finds(given_: Placed) -> None:
    nodes = given_.nodes
    by_set = {each: given_.losses(names(each)) for each in SETS}
    for service in range(len(given_.services)):
        found = survival(nodes, service)
        gone = {s for s, losses in by_set.items() if any(map(is_gone, counted(losses[service])))}
        perhaps = [
            s for s, losses in by_set.items() if any(map(may_be_gone, counted(losses[service])))
        ]
        if found is None:
            assert by_set[SETS[0]][service].state is LossState.NO_ENDPOINTS
            continue
        assert found.survives == survives(nodes, service, None)
        assert found.survives == min(map(len, perhaps), default=len(NODES) + 1) - 1
        least = min(map(len, gone), default=None)
        assert found.at_most == (None if least is None else least - 1)
        assert set(found.sets) == {each for each in gone if len(each) == least}
        if found.sets:
            total = {
                s for s, losses in by_set.items() if losses[service].state is LossState.SILENCED
            }
            assert found.is_total is (set(found.sets) <= total)


@given(placed())
def test_the_worst_node_of_a_service_costs_it_most(given_: Placed) -> None:
    nodes = given_.nodes
    alone = [given_.losses([name]) for name in NODES]
    for service in range(len(given_.services)):
        found = survival(nodes, service)
        if found is None:
            continue
        carried = [alone[group][service].worst.upper for group in _groups(given_, service)]
        if found.worst is None:
            assert not any(carried)
            continue
        assert found.worst_row is not None
        bounds = found.worst_row.loss((found.worst,))
        assert bounds.upper == max(carried)


def _groups(given_: Placed, service: int) -> set[int]:
    return {group for row in given_.nodes.services[service] for group in row.upper}


@given(placed(known=True))
def test_routes_to_the_own_node_alone_do_not_count_beside_others(given_: Placed) -> None:
    nodes = given_.nodes
    for service, rows in enumerate(nodes.services):
        for own in range(len(NODES)):
            found = survival(nodes, service, rows_that_count(rows, own))
            elsewhere = [row for row in rows if {*row.upper} != {own}]
            if not elsewhere:
                assert found == survival(nodes, service)
                continue
            without = replace(nodes, services=tuple(tuple(elsewhere) for _ in nodes.services))
            other = survival(without, service)
            assert found is not None
            assert other is not None
            assert (found.survives, found.sets) == (other.survives, other.sets)
