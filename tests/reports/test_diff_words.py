from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address, ip_network

import pytest

from analyzer.kubeproxy.diff.changes import Otherwise, RouteIdentity, ServiceChange
from analyzer.kubeproxy.names import service_name
from analyzer.kubeproxy.view import Frontend, FrontendKind, Source
from analyzer.model.probability import ALWAYS, Bounds, Dyadic
from analyzer.reports.diff_words import affinity, ends, flows, source_address, sources

CLUSTER_IP = Frontend(FrontendKind.CLUSTER_IP, ip_address("10.96.0.1"), 80)
NODE_PORTS = [Frontend(FrontendKind.NODE_PORT, None, port) for port in (30080, 30081)]
HALF, SURE = Bounds(Dyadic.of(1, 1), Dyadic.of(1, 1)), Bounds(ALWAYS, ALWAYS)


def way(
    source: Source,
    frontend: Frontend = CLUSTER_IP,
    network: str | None = None,
    but: Sequence[str] = (),
) -> RouteIdentity:
    within = None if network is None else ip_network(network)
    return RouteIdentity(frontend, source, within, tuple(map(ip_network, but)))


def told(*ways: RouteIdentity, of: int = 99) -> str:
    change = ServiceChange(
        name=service_name("ns/a"), protocol="tcp", version=4, a=None, b=None, ways=of
    )
    return flows(ways, change)


def test_all_routes_are_all() -> None:
    assert told(way(Source.POD), way(Source.NODE), of=2) == "all"
    assert told(way(Source.POD), way(Source.NODE), of=3) != "all"


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        ({Source.POD}, ["pod"]),
        ({Source.POD_ELSEWHERE}, ["pod-elsewhere"]),
        ({Source.POD, Source.POD_ELSEWHERE}, ["pods"]),
        ({Source.NODE, Source.EXTERNAL}, ["node", "external"]),
        # An endpoint is a pod too.
        ({Source.POD, Source.HAIRPIN}, ["pod"]),
        ({Source.HAIRPIN}, ["hairpin"]),
    ],
)
def test_sources_are_put_in_words(kinds: set[Source], words: list[str]) -> None:
    assert sources(kinds) == words


def test_flows_of_the_same_sources_are_told_together() -> None:
    first, second = NODE_PORTS
    found = told(
        way(Source.EXTERNAL, first), way(Source.EXTERNAL, second), way(Source.EXTERNAL, CLUSTER_IP)
    )
    assert found == "from external to NodePort *:30080, *:30081, ClusterIP 10.96.0.1:80"


def test_flows_of_other_sources_are_told_apart() -> None:
    found = told(way(Source.POD), way(Source.EXTERNAL, NODE_PORTS[0]))
    assert found == ("from pod to ClusterIP 10.96.0.1:80; from external to NodePort *:30080")


def test_every_source_is_anywhere_with_the_endpoint_itself_or_without() -> None:
    others = [way(source) for source in Source if source is not Source.HAIRPIN]
    assert told(*others) == "from anywhere to ClusterIP 10.96.0.1:80"
    assert told(*others[:-1]) != told(*others)


def test_a_network_of_sources_is_named() -> None:
    found = told(
        way(Source.EXTERNAL, network="198.51.100.0/24"), way(Source.POD, network="10.0.0.0/8")
    )
    assert found == "from 198.51.100.0/24, pods in 10.0.0.0/8 to ClusterIP 10.96.0.1:80"


def test_networks_that_did_not_change_are_excepted() -> None:
    ranges = ["192.0.2.0/24", "198.18.0.0/15"]
    found = told(way(Source.POD), way(Source.EXTERNAL, but=ranges))
    assert found == (
        "from pod, external but not 192.0.2.0/24 or 198.18.0.0/15 to ClusterIP 10.96.0.1:80"
    )
    every = [way(source, but=ranges[:1]) for source in Source]
    assert told(*every) == "from anywhere but not 192.0.2.0/24 to ClusterIP 10.96.0.1:80"
    # What is told itself is no exception.
    found = told(
        way(Source.EXTERNAL, but=ranges), *(way(Source.EXTERNAL, network=net) for net in ranges)
    )
    assert found == "from external, 192.0.2.0/24, 198.18.0.0/15 to ClusterIP 10.96.0.1:80"
    many = [f"10.{number}.0.0/24" for number in range(1, 100)]
    assert "but not 10.1.0.0/24 or 10.2.0.0/24 or 10.3.0.0/24 or 96 others to" in told(
        way(Source.EXTERNAL, but=many)
    )


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ((), "sent to endpoints"),
        ((("drop", SURE),), "dropped"),
        ((("reject", HALF),), "50.0% rejected"),
        ((("drop", HALF), ("endpoint", HALF)), "50.0% dropped, 50.0% sent to endpoints"),
    ],
)
def test_a_share_is_told_unless_it_is_all(found: Otherwise, words: str) -> None:
    assert ends(found) == words


def test_affinity_is_told_in_seconds() -> None:
    assert [affinity(each) for each in (None, 10_800)] == ["none", "10,800 s"]


def test_an_endpoint_sees_the_address_of_the_node_or_of_the_client() -> None:
    assert [source_address(each) for each in (True, False)] == ["the node's", "the client's"]
