from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import ip_address, ip_network

import pytest

from analyzer.errors import UsageError
from analyzer.failure.models import MODELS, dead
from analyzer.kubeproxy.view import View
from analyzer.model.cluster import Cluster, Node, Placement
from analyzer.model.value import replace
from tests.support.captures import FIXTURES, Capture
from tests.support.dumps import cluster_ip, dump, endpoint, two_endpoints, view_of

PODS = ("10.1.0.1:80", "10.2.0.1:8080")
VIEW = view_of(
    dump(
        *two_endpoints(*PODS),
        cluster_ip("ns/b", "10.96.0.2", chain="KUBE-SVC-B"),
        "-A KUBE-SVC-B -j KUBE-SEP-3",
        "-A KUBE-SVC-C -j KUBE-SEP-4",
        cluster_ip("ns/c", "10.96.0.3", chain="KUBE-SVC-C"),
        endpoint("KUBE-SEP-3", "10.1.0.1:9153"),
        endpoint("KUBE-SEP-4", "192.168.0.11:6443"),
    )
)
IPV6 = view_of(
    dump(*two_endpoints("[fd00::a]:80", "[fd00::b]:80")).replace("10.96.0.1/32", "fd00:96::1/128")
)


def node(name: str, number: int, zone: str) -> Node:
    return Node(
        name=name,
        addresses=(ip_address(f"192.168.0.1{number}"),),
        pod_networks=(ip_network(f"10.{number}.0.0/16"),),
        zone=zone,
    )


CLUSTER = Cluster(
    nodes={"worker1": node("worker1", 1, "east"), "worker2": node("worker2", 2, "west")},
    placements={
        ip_address("10.1.0.1"): Placement("worker1", "east"),
        ip_address("10.2.0.1"): Placement("worker2", "west"),
        ip_address("192.168.0.11"): Placement("worker1", "east"),
        ip_address("192.168.0.12"): Placement("worker2", "west"),
    },
)
ON_WORKER1 = {"10.1.0.1:80", "10.1.0.1:9153", "192.168.0.11:6443"}


def killed(
    view: View = VIEW,
    cluster: Cluster = CLUSTER,
    *,
    endpoints: Collection[str] = (),
    nodes: Collection[str] = (),
    zones: Collection[str] = (),
) -> set[str]:
    found = dead(view, cluster, endpoints=endpoints, nodes=nodes, zones=zones)
    return {str(e) for e in found.endpoints}


def test_every_model_is_tested_here() -> None:
    assert set(MODELS) == {"endpoint", "node", "zone"}


@pytest.mark.parametrize(
    ("name", "endpoints"),
    [
        ("10.1.0.1", {"10.1.0.1:80", "10.1.0.1:9153"}),
        ("10.1.0.1:9153", {"10.1.0.1:9153"}),
    ],
)
def test_an_endpoint_dies_whole_or_by_one_port(name: str, endpoints: set[str]) -> None:
    assert killed(endpoints=[name]) == endpoints


@pytest.mark.parametrize("name", ["fd00::a", "[fd00::a]", "[fd00::a]:80", "FD00:0::A"])
def test_an_ipv6_endpoint_may_stand_in_brackets(name: str) -> None:
    assert killed(IPV6, endpoints=[name]) == {"[fd00::a]:80"}


def test_a_node_takes_its_pods_and_its_own_addresses_along() -> None:
    assert killed(nodes=["worker1"]) == ON_WORKER1


def test_a_zone_takes_its_endpoints_along() -> None:
    assert killed(zones=["east"]) == ON_WORKER1


def test_failures_add_up() -> None:
    assert killed(endpoints=["10.2.0.1"], zones=["east"]) == {*ON_WORKER1, "10.2.0.1:8080"}


def test_what_was_named_is_kept_once_and_in_order() -> None:
    found = dead(VIEW, CLUSTER, endpoints=["10.2.0.1", "10.1.0.1", "10.2.0.1"], nodes=["worker2"])
    assert (found.named, found.nodes, found.zones) == (("10.2.0.1", "10.1.0.1"), ("worker2",), ())


def test_a_node_without_endpoints_takes_nothing_along() -> None:
    idle = Cluster({**CLUSTER.nodes, "idle": node("idle", 3, "north")}, CLUSTER.placements)
    assert killed(cluster=idle, nodes=["idle"]) == set()


def test_a_host_network_endpoint_dies_with_the_node_of_its_address() -> None:
    # Its EndpointSlice names no node.
    capture = Capture(FIXTURES / "1.36.2-iptables-legacy/two-node@worker1/iptables-legacy-save.txt")
    found = dead(capture.view(), capture.cluster, nodes=["master"]).endpoints
    assert "192.168.0.10:6443" in {str(e) for e in found}


@pytest.mark.parametrize(
    ("named", "message"),
    [
        (
            {"endpoints": ["10.1.0.11"]},
            "--dead 10.1.0.11: no Service of this dump has that endpoint; did you mean 10.1.0.1 ",
        ),
        ({"endpoints": ["10.1.0.1:53"]}, "--dead 10.1.0.1:53: no Service of this dump has that "),
        (
            {"endpoints": ["10.99.0.0/16"]},
            "--dead 10.99.0.0/16: no Service of this dump has an endpoint in that network",
        ),
        (
            {"endpoints": ["pod-1"]},
            "--dead pod-1: expected an address, for example 10.1.0.1 or 10.1.0.1:53",
        ),
        (
            {"endpoints": ["10.1.0.1:http"]},
            "--dead 10.1.0.1:http: expected an address, for example 10.1.0.1 or 10.1.0.1:53",
        ),
        (
            {"nodes": ["worker9"]},
            "--dead-node worker9: no such node is known; did you mean worker2 or worker1?",
        ),
        (
            {"zones": ["nowhere"]},
            "--dead-zone nowhere: no such zone is known; there are east, west",
        ),
    ],
)
def test_an_unknown_name_is_refused_with_what_is_similar(
    named: dict[str, list[str]], message: str
) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(message)}"):
        killed(VIEW, CLUSTER, **named)


def test_a_port_of_any_length_is_no_crash() -> None:
    with pytest.raises(UsageError, match="--dead"):
        killed(endpoints=["10.1.0.1:" + "1" * 5_000])


@pytest.mark.parametrize("named", [{"nodes": ["worker1"]}, {"zones": ["east"]}])
def test_without_objects_nobody_knows_who_is_on_a_node(named: dict[str, list[str]]) -> None:
    with pytest.raises(
        UsageError,
        match=r"it is not known which endpoints are (on|in) which (node|zone); pass --objects",
    ):
        killed(VIEW, Cluster(), **named)


def test_objects_that_place_no_endpoint_of_the_dump_are_refused() -> None:
    with pytest.raises(UsageError, match="not known on which node any endpoint of this dump is"):
        killed(cluster=Cluster(CLUSTER.nodes), nodes=["worker1"])


def test_objects_without_zones_are_not_asked_for_again() -> None:
    nodes = {name: replace(each, zone=None) for name, each in CLUSTER.nodes.items()}
    with pytest.raises(UsageError, match=r"no Node of --objects has the label topology\.kub") as it:
        killed(cluster=Cluster(nodes), zones=["east"])
    assert "pass --objects" not in str(it.value)


def test_an_endpoint_whose_node_has_no_zone_is_told_from_one_without_a_node() -> None:
    placements = {
        ip_address("10.1.0.1"): Placement("worker1", "east"),
        ip_address("10.2.0.1"): Placement("worker2", None),
    }
    found = dead(VIEW, Cluster(placements=placements), zones=["east"])
    assert {str(e) for e in found.uncertain} == {"10.2.0.1:8080", "192.168.0.11:6443"}
    assert {str(e) for e in found.zoneless} == {"10.2.0.1:8080"}
    assert not dead(VIEW, Cluster(placements=placements), nodes=["worker1"]).zoneless
