from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.failure.loss import LossState, ServiceLoss, losses, service_loss
from analyzer.failure.route_loss import Count, route_loss
from analyzer.kubeproxy.view import (
    Endpoint,
    Frontend,
    FrontendKind,
    Route,
    Source,
)
from analyzer.model.probability import ALWAYS, NEVER, Bounds
from tests.support.captures import FIXTURES, Capture, captures_in
from tests.support.dumps import (
    at,
    dump,
    only_service,
    two_endpoints,
)
from tests.support.routes import (
    ALL,
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


@given(exact_routes(), sets_of_endpoints)
def test_the_loss_of_a_set_is_the_sum_of_its_shares(route: Route, dead: set[Endpoint]) -> None:
    loss = route_loss(route, dying(dead)).loss
    assert loss.is_exact
    assert loss.lower.as_fraction() == sum(
        (s.share.lower.as_fraction() for s in route.shares if s.endpoint in dead), Fraction()
    )


@given(exact_routes(), sets_of_endpoints, sets_of_endpoints)
def test_more_dead_never_lose_less(route: Route, some: set[Endpoint], more: set[Endpoint]) -> None:
    less, greater = (route_loss(route, dying(each)).loss for each in (some, some | more))
    assert less.lower <= greater.lower
    assert less.upper <= greater.upper


# --- what is not known -------------------------------------------------------


def loss_of(text: str, dead: set[Endpoint]) -> Bounds:
    loss = service_loss(only_service(text), dying(dead)).loss
    assert loss is not None
    return loss


@given(
    rules=st.lists(
        st.tuples(st.sampled_from(PROBABILITIES), st.booleans(), st.integers(1, 4)), max_size=5
    ),
    missing=st.sets(st.integers(1, 4), max_size=2),
    dead=sets_of_endpoints,
    holds=st.lists(st.booleans(), min_size=5, max_size=5),
    replaced=st.dictionaries(st.integers(1, 4), st.integers(1, 6)),
)
def test_bounds_contain_every_way_the_unknown_may_turn_out(
    rules: list[tuple[str, bool, int]],
    missing: set[int],
    dead: set[Endpoint],
    holds: list[bool],
    replaced: dict[int, int],
) -> None:
    # A match nobody reads may hold or not; a chain that is missing may be any endpoint's.
    resolved = [
        (probability, False, replaced.get(number, number) if number in missing else number)
        for at, (probability, unread, number) in enumerate(rules)
        if not unread or holds[at]
    ]
    truth = loss_of(service(resolved, set()), dead)
    bounds = loss_of(service(rules, missing & {number for _, _, number in rules}), dead)
    assert truth.is_exact
    assert bounds.lower <= truth.lower
    assert truth.upper <= bounds.upper


def test_a_range_of_destinations_may_hit_the_dead() -> None:
    text = dump(*two_endpoints("10.0.0.3:80", "10.0.0.1-10.0.0.5:80"))
    truth = loss_of(dump(*two_endpoints("10.0.0.3:80", "10.0.0.3:80")), {at("10.0.0.3")})
    assert truth.upper <= loss_of(text, {at("10.0.0.3")}).upper


def test_when_nothing_is_dead_nothing_lands_there_whatever_is_unknown() -> None:
    found = only_service(service([(PROBABILITIES[0], True, 1)], {1}))
    loss = service_loss(found, dying(()), Count.DEAD)
    assert (loss.loss, loss.worst) == (NOTHING, NOTHING)


# --- states ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dead", "state"),
    [
        (ENDPOINTS[2:], LossState.UNTOUCHED),
        (ENDPOINTS[:1], LossState.DEGRADED),
        (ENDPOINTS[:2], LossState.SILENCED),
    ],
)
def test_a_service_is_untouched_degraded_or_silenced(
    dead: list[Endpoint], state: LossState
) -> None:
    two = with_routes(route([HALF.lower, HALF.lower]))
    assert service_loss(two, dying(dead)).state is state


def test_a_service_without_endpoints_has_nothing_to_lose() -> None:
    loss = service_loss(with_routes(route([])), dying(ENDPOINTS))
    assert (loss.state, loss.worst, loss.dead) == (LossState.NO_ENDPOINTS, NOTHING, ())


def test_a_service_is_degraded_while_one_route_still_leads_to_the_living() -> None:
    local = Route(FRONTEND, Source.EXTERNAL, route([ALWAYS]).shares, NEVER)
    loss = service_loss(with_routes(route([HALF.lower, HALF.lower]), local), dying(ENDPOINTS[:1]))
    assert (loss.loss, loss.worst, loss.state) == (HALF, ALL, LossState.DEGRADED)


def test_without_a_cluster_ip_there_is_a_worst_route_only() -> None:
    node_port = Route(
        Frontend(FrontendKind.NODE_PORT, None, 30_080),
        Source.EXTERNAL,
        route([ALWAYS]).shares,
        NEVER,
    )
    loss = service_loss(with_routes(node_port), dying(ENDPOINTS[:1]))
    assert (loss.loss, loss.worst) == (None, ALL)


# --- the captures ------------------------------------------------------------


@pytest.mark.parametrize("capture", captures_in(FIXTURES, "seed-dns*"), ids=str)
def test_half_of_the_cluster_dns_is_lost_with_one_of_its_two_endpoints(capture: Capture) -> None:
    view = capture.view()
    found = losses(view.services, dying(e for e in view.endpoints if str(e.address) == "10.1.0.1"))
    assert {loss.service.name.port: loss.loss for loss in found} == {
        "dns": HALF,
        "dns-tcp": HALF,
        "metrics": HALF,
    }
    assert {each.loss for loss in found for each in loss.routes} == {HALF}
    assert {state_and_dead(loss) for loss in found} == {(LossState.DEGRADED, 1)}


def state_and_dead(loss: ServiceLoss) -> tuple[LossState, int]:
    return loss.state, len(loss.dead)
