"""Ways to endpoints: what neighbours and routes of a node speak against."""

from __future__ import annotations

import json
from ipaddress import ip_address, ip_network

import pytest

from analyzer.errors import InputError
from analyzer.failure.reached import Connectivity
from analyzer.model.cluster import Cluster, Node, Placement
from analyzer.parsers.iproute import parse_routes

HERE, THERE, GONE = (ip_address(f"10.244.{at}.5") for at in (1, 2, 3))
NODE = ip_address("192.168.0.12")
CLUSTER = Cluster(
    nodes={
        "worker2": Node(name="worker2", addresses=(NODE,)),
        "worker3": Node(name="worker3", pod_networks=(ip_network("10.244.3.0/24"),)),
    },
    placements={THERE: Placement("worker2", None)},
)
DEFAULT = {"dst": "default", "gateway": "192.168.0.1", "dev": "eth0", "flags": []}
TO_PODS = {"dst": "10.244.1.0/24", "dev": "cni0", "scope": "link", "flags": []}
TO_THERE = {"dst": "10.244.2.0/24", "gateway": str(NODE), "dev": "eth0", "flags": []}


def reached(
    *routes: object, lost: tuple[str, ...] = (), cluster: Cluster = CLUSTER
) -> Connectivity:
    ways = parse_routes(json.dumps(routes).encode(), "routes.json")
    return Connectivity([ip_address(each) for each in lost], ways, cluster, (HERE, THERE, GONE))


def test_without_anything_told_nothing_speaks_against_anybody() -> None:
    assert Connectivity().why_not(HERE) is None
    assert reached(DEFAULT, TO_PODS, TO_THERE).why_not(THERE) is None
    # Where all pods are behind one device, or one route, no other tells who lacks his own.
    assert reached(DEFAULT, TO_PODS).why_not(GONE) is None


@pytest.mark.parametrize(
    ("routes", "lost", "says"),
    [
        ((DEFAULT, TO_THERE), (str(THERE),), "no neighbour: it did not answer ARP or ND"),
        ((DEFAULT, TO_THERE), (str(NODE),), f"no neighbour: its next hop {NODE} did not answer"),
        ((), (str(NODE),), f"no neighbour: its node's {NODE} did not answer ARP or ND"),
        ((DEFAULT, {**TO_THERE, "type": "unreachable"}), (), "no route: 10.244.2.0/24 is closed"),
        ((DEFAULT, {**TO_THERE, "flags": ["linkdown"]}), (), "no route: 10.244.2.0/24 is closed"),
        ((DEFAULT, {**TO_THERE, "dst": str(THERE), "type": "blackhole"}, TO_THERE), (), "no route"),
    ],
)
def test_what_speaks_against_a_way(
    routes: tuple[object, ...], lost: tuple[str, ...], says: str
) -> None:
    assert (reached(*routes, lost=lost).why_not(THERE) or "").startswith(says)
    assert reached(*routes, TO_PODS, lost=lost).why_not(HERE) is None


def test_a_route_that_others_have_is_missed() -> None:
    assert reached(DEFAULT, TO_PODS, TO_THERE).why_not(GONE) == (
        "no route to it, unlike to other pods"
    )
    assert reached(TO_THERE).why_not(GONE) == "no route to it, unlike to other pods"
    # The way to what is outside of the cluster is the default one.
    assert reached(DEFAULT, TO_PODS, TO_THERE).why_not(ip_address("192.168.7.7")) is None


@pytest.mark.parametrize("text", ["{}", "nothing", '"text"', "[" * 100_000])
def test_what_is_no_list_of_routes_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="expected the output of `ip -j route`"):
        parse_routes(text.encode(), "r")


def test_what_is_no_route_is_passed_over() -> None:
    (only,) = parse_routes(b'[1, {}, {"dst": "x"}, {"dst": null}, {"dst": "::/0"}]', "r").routes
    assert only.network.version == 6
