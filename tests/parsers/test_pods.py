from __future__ import annotations

from ipaddress import ip_address
from typing import Any

import pytest

from analyzer.parsers.pods import pods_of

POD, PORT = ip_address("10.1.0.1"), 8080
Object = dict[str, Any]


def target(name: str = "a", **more: Any) -> Object:
    return {"kind": "Pod", "namespace": "ns", "name": name, **more}


def endpoint_slice(reference: Object | None, port: int = PORT) -> Object:
    endpoint = {"addresses": [str(POD)], "targetRef": reference}
    metadata = {"namespace": "own", "name": "s"}
    ports = [{"port": port}]
    return {"kind": "EndpointSlice", "metadata": metadata, "endpoints": [endpoint], "ports": ports}


def endpoints(reference: Object, key: str = "addresses") -> Object:
    subset = {key: [{"ip": str(POD), "targetRef": reference}], "ports": [{"port": PORT}]}
    return {"kind": "Endpoints", "metadata": {"namespace": "own", "name": "s"}, "subsets": [subset]}


def pod(name: str = "a", *, phase: str = "Running", host: str = "192.0.2.1", **spec: Any) -> Object:
    status = {"podIP": str(POD), "hostIP": host, "phase": phase}
    metadata = {"namespace": "ns", "name": name}
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


@pytest.mark.parametrize(
    "item",
    [
        endpoint_slice(target()),
        endpoints(target()),
        endpoints(target(), "notReadyAddresses"),
        pod(),
    ],
    ids=["slice", "endpoints", "not ready", "pod"],
)
def test_an_endpoint_has_the_pod_that_the_objects_name(item: Object) -> None:
    assert pods_of([item]).of(POD, PORT) == "ns/a"
    assert pods_of([item]).of(ip_address("10.1.0.2"), PORT) is None


def test_a_reference_without_a_namespace_is_to_that_of_its_object() -> None:
    assert pods_of([endpoint_slice(target(namespace=None))]).of(POD, PORT) == "own/a"


@pytest.mark.parametrize("reference", [None, target(kind="Node"), {**target(), "name": None}, "a"])
def test_what_refers_to_no_pod_names_none(reference: Any) -> None:
    assert pods_of([endpoint_slice(reference)]).of(POD, PORT) is None


def test_a_slice_names_the_pod_of_its_ports_alone() -> None:
    """On a node's own address pods of two Services may listen, each on its port."""
    found = pods_of([endpoint_slice(target("a")), endpoint_slice(target("b"), 9090)])
    told = found.of(POD, PORT), found.of(POD, 9090), found.of(POD, 80), found.of(POD, None)
    assert told == ("ns/a", "ns/b", None, None)


def test_all_ports_of_a_pod_with_its_own_network_are_its_own() -> None:
    assert pods_of([pod()]).of(POD, 80) == pods_of([pod()]).of(POD, None) == "ns/a"


@pytest.mark.parametrize("other", [pod(hostNetwork=True), pod(host=str(POD)), pod(phase="Failed")])
def test_a_pod_that_shares_its_address_or_has_ended_tells_nothing(other: Object) -> None:
    assert pods_of([other]).of(POD, PORT) is None


@pytest.mark.parametrize(
    "items",
    [
        (pod("a"), pod("b")),
        (endpoint_slice(target("a")), endpoint_slice(target("b")), endpoint_slice(target("a"))),
        (endpoint_slice(target("a")), endpoints(target("b"))),
        (endpoint_slice(target("a")), pod("b")),
        (endpoint_slice(target("a")), pod("a"), pod("b")),
    ],
)
def test_where_two_pods_are_named_neither_is_told(items: tuple[Object, ...]) -> None:
    for order in (items, items[::-1]):
        assert pods_of(order).of(POD, PORT) is None
