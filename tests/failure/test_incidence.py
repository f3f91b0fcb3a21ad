"""What a row loses is what `loss` finds for its route."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from analyzer.failure.incidence import BITS, ONE, incidence, rank
from analyzer.failure.models import Dead
from analyzer.failure.route_loss import route_loss
from analyzer.failure.ways import ways
from analyzer.kubeproxy.view import Source
from analyzer.model.probability import ALWAYS, NEVER, Bounds
from tests.support.incidences import NODES, Placed, names, placed, some_nodes
from tests.support.routes import exact_routes, with_routes


@given(placed(), some_nodes)
def test_a_row_loses_what_its_route_does(given_: Placed, dead: set[int]) -> None:
    died = given_.dead(names(dead))
    for row in (row for rows in given_.nodes.services for row in rows):
        if row.is_unfilled:
            assert row.loss(dead) == Bounds(NEVER, ALWAYS)
            continue
        truth = route_loss(row.route, died)
        assert row.loss(dead) == truth.loss
        assert row.reaches_none(dead) == ~truth.survives.lower
        for number, end in (
            (row.least(dead), truth.loss.lower),
            (row.most(dead), truth.loss.upper),
        ):
            assert abs(Fraction(number, ONE) - end.as_fraction()) < Fraction(1, 1 << BITS - 16)
            assert bool(number) is bool(end)


@given(placed())
def test_routes_that_fare_alike_are_one_row(given_: Placed) -> None:
    for service, rows in zip(given_.services, given_.nodes.services, strict=True):
        kinds = {
            (tuple(route.shares), route.unresolved)
            for route in service.routes
            if route.source is not Source.HAIRPIN and route.frontend not in service.unfilled
        }
        leading = [kind for kind in kinds if kind[1] or any(share.share.upper for share in kind[0])]
        assert len([row for row in rows if not row.is_unfilled]) == len(leading)


@given(placed())
def test_each_node_has_the_rows_that_it_carries(given_: Placed) -> None:
    nodes = given_.nodes
    assert nodes.groups == NODES
    for group, rows in enumerate(nodes.of_group):
        carried = {id(row) for own in nodes.services for row in own if group in row.upper}
        assert {*map(id, rows)} == carried
        assert len(rows) == len(carried)


@given(exact_routes())
def test_a_share_of_many_bits_is_rounded_but_never_to_nothing(route: object) -> None:
    found = incidence([ways(with_routes(route))], [], lambda texts: [*texts])  # type: ignore[arg-type]  # lists do
    (rows,) = found.services
    for number, share in zip(rows[0].upper.values(), rows[0].route.shares, strict=True):
        truth = share.share.upper.as_fraction() * ONE
        assert number > 0
        assert abs(number - truth) < 1


@given(st.integers(0, 4 * ONE), st.integers(-(1 << 20), 1 << 20))
def test_sums_that_differ_by_rounding_rank_alike(number: int, off: int) -> None:
    whole = number >> 64 << 64  # as what netfilter draws with few bits
    assert rank(whole + off) == rank(whole)
    assert rank(whole + (1 << 64)) == rank(whole) + 1


def test_nothing_dead_is_nothing_lost() -> None:
    assert Placed((), {}).nodes.counted == 0
    assert not Dead(endpoints=frozenset()).is_anything
