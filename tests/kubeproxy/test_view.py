from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address

import pytest

from analyzer.kubeproxy.names import service_name
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.view import (
    Endpoint,
    Frontend,
    FrontendKind,
    FrontendState,
    Route,
    ServicePort,
    Share,
    Source,
    View,
)
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from tests.support.dumps import at

HALF = Bounds(Dyadic.of(1, 1), Dyadic.of(1, 1))
WIDE = Bounds(NEVER, ALWAYS)
ONE, TWO = at("10.1.0.1"), at("10.1.0.2")
CLUSTER_IP = Frontend(FrontendKind.CLUSTER_IP, ip_address("10.96.0.1"), 80)
NODE_PORT = Frontend(FrontendKind.NODE_PORT, None, 30080)


def route(
    *endpoints: Endpoint,
    frontend: Frontend = CLUSTER_IP,
    source: Source = Source.POD,
    share: Bounds = HALF,
    unresolved: Dyadic = NEVER,
) -> Route:
    shares = tuple(Share(each, share, masquerade=False) for each in endpoints)
    return Route(frontend, source, shares, unresolved)


def service(
    *routes: Route,
    refusals: Sequence[tuple[Frontend, str]] = (),
    unfilled: Sequence[Frontend] = (),
) -> ServicePort:
    return ServicePort(
        name=service_name("ns/a:http"),
        protocol="tcp",
        frontends=(CLUSTER_IP, NODE_PORT),
        routes=routes,
        refusals=tuple(refusals),
        unfilled=tuple(unfilled),
    )


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (at("10.1.0.1"), "10.1.0.1:80"),
        (at("10.1.0.1", None), "10.1.0.1"),
        (at("fd00::1"), "[fd00::1]:80"),
        (CLUSTER_IP, "10.96.0.1:80"),
        (NODE_PORT, "*:30080"),
        (Frontend(FrontendKind.NODE_PORT, None, None), "*:?"),
        (Frontend(FrontendKind.EXTERNAL_IP, ip_address("fd00::1"), 80), "[fd00::1]:80"),
    ],
)
def test_addresses_are_printed_with_their_port(shown: Endpoint | Frontend, text: str) -> None:
    assert str(shown) == text


def test_a_route_gives_its_shares_as_columns() -> None:
    found = route(ONE, TWO)
    assert found.columns() == (["10.1.0.1:80", "10.1.0.2:80"], [HALF, HALF])
    assert found.draws() == ([ONE, TWO], [HALF, HALF])
    assert found.masquerades() == (False, False)


def test_a_route_is_exact_where_nothing_unknown_can_change_a_share() -> None:
    assert route(ONE).is_exact
    assert not route(ONE, share=WIDE).is_exact
    assert not route(ONE, unresolved=Dyadic.of(1, 9)).is_exact


@pytest.mark.parametrize(
    ("given", "state"),
    [
        (service(route(ONE)), FrontendState.ENDPOINTS),
        (service(route()), FrontendState.NO_ENDPOINTS),
        (service(), FrontendState.NO_ENDPOINTS),
        (service(route(ONE, share=WIDE)), FrontendState.UNKNOWN),
        (service(route(unresolved=ALWAYS)), FrontendState.UNKNOWN),
        (service(route(ONE), route(source=Source.EXTERNAL)), FrontendState.ENDPOINTS),
        # What other frontends lead to does not matter.
        (service(route(ONE, frontend=NODE_PORT)), FrontendState.NO_ENDPOINTS),
        (service(route(ONE), route(frontend=NODE_PORT, share=WIDE)), FrontendState.ENDPOINTS),
        # A refusal is for want of endpoints, of some sources at least.
        (service(route(), refusals=[(CLUSTER_IP, "reject")]), FrontendState.NO_ENDPOINTS),
        (service(route(ONE), refusals=[(CLUSTER_IP, "drop")]), FrontendState.ENDPOINTS),
        # In the middle of a sync its chain has no rule yet.
        (service(route(), unfilled=[CLUSTER_IP]), FrontendState.UNKNOWN),
    ],
)
def test_a_frontend_leads_to_endpoints_or_not(given: ServicePort, state: FrontendState) -> None:
    assert given.state(CLUSTER_IP) is state


def test_the_cluster_route_is_that_of_a_pod_to_the_cluster_ip() -> None:
    wanted = route(ONE)
    others = route(ONE, frontend=NODE_PORT), route(ONE, source=Source.EXTERNAL)
    assert service(*others, wanted).cluster_route is wanted
    assert service(*others).cluster_route is None


def test_routes_are_told_apart_by_their_source() -> None:
    inside, outside = route(ONE), route(ONE, frontend=NODE_PORT, source=Source.EXTERNAL)
    assert list(service(inside, outside).routes_from(Source.EXTERNAL)) == [outside]
    assert list(service(inside, outside).routes_from(Source.NODE)) == []


def test_an_endpoint_of_several_routes_is_counted_once() -> None:
    given = service(route(TWO, ONE), route(ONE, frontend=NODE_PORT))
    assert given.endpoints == (TWO, ONE)
    view = View(
        services=(given, service(route(at("10.1.0.3"), ONE))), mode=ProxyMode.IPTABLES, node=None
    )
    assert view.endpoints == (TWO, ONE, at("10.1.0.3"))
