"""What dies, what survives and what reaches no endpoint: together all new flows of a route."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.failure.loss import LossState, service_loss
from analyzer.failure.models import Dead
from analyzer.failure.route_loss import RouteLoss, route_loss
from analyzer.kubeproxy.view import Endpoint, Route, ServicePort, Share, Source
from analyzer.model.endings import UNKNOWN_END, Ending, EndKind
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from analyzer.model.value import replace
from tests.support.dumps import only_service
from tests.support.effort import examples
from tests.support.routes import (
    ENDPOINTS,
    FRONTEND,
    HALF,
    NOTHING,
    PROBABILITIES,
    dying,
    exact_routes,
    route,
    service,
    sets_of_endpoints,
    with_routes,
)

ANY = Bounds(NEVER, ALWAYS)
DROPPED = Ending(kind=EndKind.DROPPED, how="DROP", rule="-A X -j DROP")
REFUSED = Ending(kind=EndKind.REFUSED, how="reject")
NODE = Dead(endpoints=frozenset(), nodes=("n1",))


@given(exact_routes(), st.integers(0, 5), sets_of_endpoints)
def test_exact_parts_sum_to_all_flows(whole: Route, kept: int, dead: set[Endpoint]) -> None:
    some = replace(whole, shares=tuple(whole.shares)[:kept])
    found = route_loss(some, dying(dead))
    parts = (found.loss, found.nowhere, found.survives)
    assert all(part.is_exact for part in parts)
    assert sum(part.lower.as_fraction() for part in parts) == 1


@given(
    rules=st.lists(
        st.tuples(st.sampled_from(PROBABILITIES), st.booleans(), st.integers(1, 4)), max_size=4
    ),
    dead=sets_of_endpoints,
    uncertain=sets_of_endpoints,
    holds=st.lists(st.booleans(), min_size=4, max_size=4),
    die=st.booleans(),
)
def test_bounds_of_each_part_contain_every_way_the_unknown_may_turn_out(
    rules: list[tuple[str, bool, int]],
    dead: set[Endpoint],
    uncertain: set[Endpoint],
    holds: list[bool],
    die: bool,
) -> None:
    resolved = [
        (probability, False, number)
        for at, (probability, unread, number) in enumerate(rules)
        if not unread or holds[at]
    ]
    truth = of_cluster(
        only_service(service(resolved, set())), dying(dead | (uncertain if die else set()))
    )
    told = of_cluster(
        only_service(service(rules, set())),
        Dead(endpoints=frozenset(dead), uncertain=frozenset(uncertain - dead)),
    )
    for part in ("loss", "nowhere", "survives"):
        bounds, exact = getattr(told, part), getattr(truth, part)
        assert exact.is_exact
        assert bounds.lower <= exact.lower
        assert exact.upper <= bounds.upper


def of_cluster(found: ServicePort, dead: Dead) -> RouteLoss:
    cluster = service_loss(found, dead).cluster
    assert cluster is not None
    return cluster


def test_what_is_not_resolved_may_land_on_an_endpoint_that_the_dump_does_not_show() -> None:
    hidden = Route(FRONTEND, Source.POD, (), ALWAYS)
    assert route_loss(hidden, NODE).loss == ANY
    assert route_loss(hidden, dying(())).loss == NOTHING
    assert route_loss(hidden, dying(())).nowhere == ANY


def test_what_certainly_dies_does_not_survive() -> None:
    half_or_more = Share(ENDPOINTS[0], Bounds(HALF.lower, ALWAYS), None)
    overlapping = Route(FRONTEND, Source.POD, (half_or_more, Share(ENDPOINTS[1], ANY, None)), NEVER)
    found = route_loss(overlapping, dying(ENDPOINTS[:1]))
    assert found.survives == Bounds(NEVER, HALF.lower)
    assert found.loss == Bounds(HALF.lower, ALWAYS)


# --- beside rules that end flows ---------------------------------------------------

#: Sixteenths of the flows: to each endpoint, dropped, refused (which is no loss), ended in a way
#: that may be a loss or not, unresolved.
sixteenths = st.lists(st.integers(0, 16), min_size=6, max_size=6).map(
    lambda ends: [b - a for a, b in pairwise([0, *sorted(ends), 16])]
)


def around(number: int, of: int, less: int, more: int) -> Bounds:
    """Return bounds that hold `number` / 2**`of`."""
    return Bounds(Dyadic.of(max(0, number - less), of), Dyadic.of(min(1 << of, number + more), of))


@examples(40, 5_000)
@given(
    parts=sixteenths,
    gone=st.lists(st.integers(0, 4), min_size=3, max_size=3),
    dead=st.sets(st.sampled_from(ENDPOINTS[:3])),
    uncertain=st.sets(st.sampled_from(ENDPOINTS[:3])),
    wide=st.lists(st.integers(0, 6), min_size=18, max_size=18),
    dies=st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
def test_whatever_ends_flows_the_bounds_contain_what_is_lost(
    parts: list[int],
    gone: list[int],
    dead: set[Endpoint],
    uncertain: set[Endpoint],
    wide: list[int],
    dies: tuple[bool, bool, bool],
) -> None:
    *sent, dropped, refused, unknown, unresolved = parts
    less, more = wide[:9], wide[9:]
    shares = tuple(
        Share(
            end,
            around(sent[at], 4, less[at], more[at]),
            None,
            ((DROPPED, around(gone[at], 2, less[6 + at] // 3, more[6 + at] // 3)),),
        )
        for at, end in enumerate(ENDPOINTS[:3])
    )
    astray = tuple(
        (end, around(part, 4, less[at], more[at]))
        for at, (end, part) in enumerate(
            ((DROPPED, dropped), (REFUSED, refused), (UNKNOWN_END, unknown)), 3
        )
        if part or more[at]
    )
    open_ = Dyadic.of(unresolved, 4)
    marked = Dead(endpoints=frozenset(dead), uncertain=frozenset(uncertain - dead))
    found = route_loss(Route(FRONTEND, Source.POD, shares, open_, None, astray), marked)
    is_open, is_unknown_lost, uncertain_die = dies
    gone_for_good = dead | (uncertain if uncertain_die else set())
    lost = Fraction(dropped + unknown * is_unknown_lost, 16) + sum(
        Fraction(number, 16) * (1 if end in gone_for_good else Fraction(part, 4))
        for end, number, part in zip(ENDPOINTS, sent, gone, strict=False)
    )
    # Unresolved flows get to an endpoint that the dump does not show, which may be dead.
    lost += Fraction(unresolved, 16) * (is_open and bool(dead))
    kept = 1 - lost - Fraction(refused + unknown * (not is_unknown_lost), 16)
    for told, true in ((found.loss, lost), (found.survives, kept)):
        assert told.lower.as_fraction() <= true <= told.upper.as_fraction()


def test_what_may_be_dropped_before_it_is_drawn_is_lost_at_the_dead_at_the_latest() -> None:
    halves = tuple(Share(end, Bounds(NEVER, HALF.upper), None) for end in ENDPOINTS[:2])
    told = Route(FRONTEND, Source.POD, halves, NEVER, None, ((DROPPED, ANY),))
    assert route_loss(told, dying(ENDPOINTS[:1])).loss == Bounds(HALF.lower, ALWAYS)
    # Shares of a hairpin route do not add up to the flows of one sender.
    own = tuple(replace(each, lost=((DROPPED, ANY),)) for each in halves)
    hairpin = replace(told, source=Source.HAIRPIN, shares=own, astray=())
    assert route_loss(hairpin, dying(ENDPOINTS[:1])).loss == ANY
    refused = replace(told, astray=(*told.astray, (REFUSED, ANY)))
    assert route_loss(refused, dying(ENDPOINTS[:1])).loss == ANY


def test_what_ends_in_no_way_that_is_listed_need_not_be_lost() -> None:
    may_be_dropped = Share(ENDPOINTS[0], HALF, None, ((DROPPED, ANY),))
    found = route_loss(Route(FRONTEND, Source.POD, (may_be_dropped,), NEVER), dying(()))
    assert found.loss == Bounds(NEVER, HALF.upper)


# --- states ----------------------------------------------------------------------


def unsure(endpoint: Endpoint) -> Route:
    return Route(FRONTEND, Source.EXTERNAL, (Share(endpoint, ANY, None),), ALWAYS)


@pytest.mark.parametrize(
    ("routes", "dead", "state"),
    [
        ([route([HALF.lower])], dying(ENDPOINTS[:1]), LossState.SILENCED),
        ([route([HALF.lower])], dying(ENDPOINTS[1:]), LossState.UNTOUCHED),
        ([route([])], NODE, LossState.NO_ENDPOINTS),
        ([Route(FRONTEND, Source.POD, (), ALWAYS)], NODE, LossState.UNKNOWN),
        ([Route(FRONTEND, Source.POD, (), ALWAYS)], dying(()), LossState.UNKNOWN),
        ([unsure(ENDPOINTS[0])], dying(ENDPOINTS[:1]), LossState.UNKNOWN),
        ([route([ALWAYS]), unsure(ENDPOINTS[0])], dying(ENDPOINTS[:1]), LossState.DEGRADED),
        ([route([ALWAYS]), unsure(ENDPOINTS[1])], dying(ENDPOINTS[1:]), LossState.UNKNOWN),
        ([route([ALWAYS]), route([])], dying(ENDPOINTS[:1]), LossState.SILENCED),
        (
            [route([ALWAYS])],
            Dead(endpoints=frozenset(), uncertain=frozenset(ENDPOINTS)),
            LossState.UNKNOWN,
        ),
    ],
)
def test_a_state_says_no_more_than_is_known(
    routes: list[Route], dead: Dead, state: LossState
) -> None:
    assert service_loss(with_routes(*routes), dead).state is state


def test_a_chain_that_is_not_filled_may_lead_anywhere() -> None:
    unfilled = replace(with_routes(route([])), unfilled=(FRONTEND,))
    found = service_loss(unfilled, NODE)
    assert (found.state, found.loss, found.worst) == (LossState.UNKNOWN, ANY, ANY)
    assert service_loss(unfilled, dying(())).loss == NOTHING


def test_the_most_that_reaches_no_endpoint_is_of_routes_that_lead_to_some() -> None:
    found = service_loss(with_routes(route([HALF.lower]), route([])), dying(()))
    assert found.nowhere == HALF
    assert service_loss(with_routes(route([])), dying(())).nowhere == NOTHING


@pytest.mark.parametrize(
    ("weights", "dead", "most", "beyond"),
    [
        ([HALF.lower, HALF.lower], 1, HALF.lower, False),
        ([HALF.lower, Dyadic.of(1, 2)], 1, HALF.lower, True),
        ([HALF.lower], 1, Dyadic.of(3, 2), True),
        ([HALF.lower], 0, NEVER, False),
        ([ALWAYS], 1, ALWAYS, False),
    ],
)
def test_a_threshold_counts_all_flows_that_reach_no_living_endpoint_where_some_die(
    weights: list[Dyadic], dead: int, most: Dyadic, beyond: bool
) -> None:
    found = route_loss(route(weights), dying(ENDPOINTS[:dead]))
    assert found.is_lost_beyond(most.as_fraction()) is beyond
