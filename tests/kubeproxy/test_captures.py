"""The Services of every captured dump are those that its objects imply."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.kubeproxy import names
from analyzer.kubeproxy.view import FrontendKind, Route, ServicePort, Source
from analyzer.model.probability import ALWAYS, NEVER
from tests.support.captures import FIXTURES, Capture, captures_in, expected_shares

EVERY = captures_in(FIXTURES, "seed-dns*", "two-node*")
every_capture = pytest.mark.parametrize("capture", EVERY, ids=str)


def routes(capture: Capture, source: Source) -> dict[str, Route]:
    return {
        service.name.text: route
        for service in capture.view().services
        for route in service.routes
        if route.source is source
    }


def total(route: Route) -> bool:
    return sum((share.share.lower for share in route.shares), NEVER) == ALWAYS


def test_both_backends_and_all_versions_are_among_the_fixtures() -> None:
    names_of = {directory.name for directory in FIXTURES.iterdir()}
    assert {str(c).partition("/")[0] for c in EVERY} == {n for n in names_of if "iptables" in n}


@every_capture
def test_service_ports_and_frontends_are_those_of_the_objects(capture: Capture) -> None:
    assert sorted(
        (s.name.text, s.protocol, f.kind, f.address, f.port)
        for s in capture.view().services
        for f in s.frontends
    ) == sorted(
        (w.name, w.protocol, FrontendKind.CLUSTER_IP, w.address, w.port) for w in capture.wanted()
    )


@every_capture
@pytest.mark.parametrize("source", Source)
def test_endpoints_are_those_of_the_objects(capture: Capture, source: Source) -> None:
    found = routes(capture, source)
    assert {name: {s.endpoint for s in route.shares} for name, route in found.items()} == {
        w.name: w.endpoints for w in capture.wanted()
    }


@every_capture
@pytest.mark.parametrize("source", Source)
def test_shares_are_those_of_the_printed_digits(capture: Capture, source: Source) -> None:
    for route in routes(capture, source).values():
        shares = tuple(s.share.lower for s in route.shares)
        assert route.is_exact
        assert total(route)
        assert shares == expected_shares(capture.version, len(shares))
        assert [float(s) for s in shares] == pytest.approx([1 / len(shares)] * len(shares), 1e-9)


@every_capture
def test_a_flow_from_a_pod_keeps_its_source(capture: Capture) -> None:
    found = routes(capture, Source.POD).values()
    assert {s.masquerade for route in found for s in route.shares} == {False}


@every_capture
def test_a_flow_from_outside_is_masqueraded_unless_it_ends_at_the_node(capture: Capture) -> None:
    own = capture.cluster.nodes[capture.node].addresses
    for route in routes(capture, Source.EXTERNAL).values():
        for share in route.shares:
            assert share.masquerade is (share.endpoint.address not in own)


@every_capture
def test_chains_are_named_after_the_hash_of_their_service(capture: Capture) -> None:
    text = capture.text
    for wanted in capture.wanted():
        chain = names.chain_hash(wanted.raw, wanted.protocol)
        assert f":KUBE-SVC-{chain} " in text
        for endpoint in wanted.endpoints:
            chain = names.chain_hash(wanted.raw, wanted.protocol, str(endpoint))
            assert f":KUBE-SEP-{chain} " in text


@every_capture
def test_nothing_is_left_to_say_of_a_whole_dump(capture: Capture) -> None:
    assert capture.view().diagnostics == ()


# --- the larger captures, which are not copied into the project --------------


@pytest.fixture(params=["features*", "dual-stack", "scale-100", "big-svc"])
def larger(captures: Path, request: pytest.FixtureRequest) -> list[Capture]:
    found = captures_in(captures, request.param)
    assert found
    return found


def test_shares_of_every_understood_route_sum_to_one(larger: list[Capture]) -> None:
    for capture in larger:
        for service in capture.view().services:
            for route in service.routes:
                understood = route.is_exact and route.shares
                assert total(route) or not understood, (capture, service.name, route)


def test_only_the_bridge_ports_of_old_external_ips_stay_unknown(larger: list[Capture]) -> None:
    for capture in larger:
        unknown = {
            route.frontend.kind
            for service in capture.view().services
            for route in service.routes
            if not route.is_exact
        }
        # -m physdev ! --physdev-is-in, which later versions do not ask.
        assert unknown <= ({FrontendKind.EXTERNAL_IP} if capture.version <= (1, 20) else set())


def test_cluster_ips_lead_to_the_ready_endpoints_by_their_thresholds(captures: Path) -> None:
    numbers = set()
    for capture in captures_in(captures, "big-svc", "scale-100", "features*"):
        wanted = {w.name: w for w in capture.wanted()}
        for service in plain_services(capture):
            route = service.cluster_route
            assert route is not None
            shares = tuple(s.share.lower for s in route.shares)
            numbers.add(len(shares))
            assert {s.endpoint for s in route.shares} == wanted[service.name.text].endpoints
            assert shares == expected_shares(capture.version, len(shares))
    assert {1, 2, 3, 4, 5, 7, 10, 100, 1000} <= numbers


def plain_services(capture: Capture) -> list[ServicePort]:
    """Return the Services that differ in nothing but the number of their endpoints."""
    plain = ("count", "default", "ns-")
    return [s for s in capture.view().services if (s.name.namespace or "").startswith(plain)]
