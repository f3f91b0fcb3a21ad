"""Endpoints are found where their addresses are, however they are printed."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from analyzer.failure.places import EndpointPlaces
from analyzer.kubeproxy.view import Endpoint
from analyzer.model.cluster import Cluster, Node, Placement

CLUSTER = Cluster(
    {"n3": Node(name="n3", zone="c")},
    {
        ip_address("10.0.0.1"): Placement("n1", "a"),
        ip_address("fd00::1"): Placement("n2", "b"),
        ip_address("10.0.3.1"): Placement(None, "z"),
    },
).with_networks([(ip_network("10.0.3.0/24"), "n3"), (ip_network("fd00:3::/64"), "n3")])


@pytest.mark.parametrize("port", [None, 80])
@pytest.mark.parametrize(
    "address", ["10.0.0.1", "10.0.3.1", "10.0.3.2", "10.0.9.1", "fd00::1", "fd00:3::1", "fd00:9::1"]
)
def test_a_printed_endpoint_is_where_its_address_is(address: str, port: int | None) -> None:
    endpoint = Endpoint(ip_address(address), port)
    places = EndpointPlaces(CLUSTER)
    for _ in range(2):
        assert [*places.of([str(endpoint)])] == [CLUSTER.placement(endpoint.address)]


def test_a_list_is_looked_up_once() -> None:
    places, printed = EndpointPlaces(CLUSTER), ["10.0.0.1:80", "10.0.9.1:80"]
    assert places.of(printed) is places.of(printed)
