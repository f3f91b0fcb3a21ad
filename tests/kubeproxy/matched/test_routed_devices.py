"""Which devices are pods', by routes as network plugins write them."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from analyzer.kubeproxy.matched.routed_devices import devices_of_pods
from analyzer.model.intervals import span, without
from analyzer.model.routing import KernelRoute, Routes
from analyzer.semantics.devices import PodPlaces

NOWHERE = PodPlaces(), PodPlaces()
HERE = PodPlaces((span(ip_network("10.244.1.0/24")),), (span(ip_network("10.244.2.0/24")),))
PLACES = HERE, PodPlaces((span(ip_network("fd00:1::/64")),), ())
UPLINK = KernelRoute(ip_network("0.0.0.0/0"), "eth0", hop=ip_address("192.168.0.1"))
NODES = KernelRoute(ip_network("192.168.0.0/24"), "eth0")
DOCKER = KernelRoute(ip_network("172.17.0.0/16"), "docker0")


def to(network: str, device: str | None, **more: Any) -> KernelRoute:
    return KernelRoute(ip_network(network), device, **more)


def found(*routes: KernelRoute, places: Any = PLACES, own: tuple[str, ...] = ()) -> tuple[str, ...]:
    known = Routes((UPLINK, NODES, DOCKER, *routes))
    return devices_of_pods(known, places, tuple(map(ip_address, own)))


CALICO = (
    to("10.244.1.5/32", "cali12345678901"),
    to("10.244.1.6/32", "cali2"),
    to("10.244.1.0/26", None),
)
BRIDGE = (
    to("10.244.1.0/24", "br-pods"),
    to("10.244.2.0/24", "flannel.1", hop=ip_address("10.244.2.0")),
)


@pytest.mark.parametrize(
    ("routes", "want"),
    [
        (CALICO, ("cali+",)),
        (BRIDGE, ("br-pods",)),
        ((to("10.244.1.0/24", "cni0"),), ("cni0",)),
        ((to("fd00:1::/64", "br-six"), *BRIDGE), ("br-pods", "br-six")),
        # A pod's device has the name that its plugin gave it, or one of its own.
        ((to("10.244.1.7/32", "tap7"), *CALICO), ("cali+", "tap7")),
        ((), ()),
    ],
)
def test_pods_of_the_node_are_reached_without_a_next_hop(
    routes: tuple[KernelRoute, ...], want: tuple[str, ...]
) -> None:
    assert found(*routes) == want


def test_pods_elsewhere_may_be_neighbours_and_their_device_is_no_pods() -> None:
    """On AWS all nodes' pods are in the network of the nodes, each pod with a route of its own."""
    mine = (span(ip_network("192.168.0.77/32")),)
    wide = PodPlaces(mine, without((span(ip_network("192.168.0.0/25")),), mine))
    alone = to("192.168.0.77/32", "eni7")
    assert found(alone, places=(wide, PodPlaces())) == ("eni+",)
    # Nor is that of a bridge which is not of pods, or of a peer that is one address.
    assert found(alone, to("10.8.0.2/32", "tun0"), places=NOWHERE) == ("eni+",)


def test_a_bridge_that_pods_elsewhere_are_on_too_tells_nothing() -> None:
    wide = PodPlaces((span(ip_network("10.244.1.0/24")),), (span(ip_network("10.244.2.0/24")),))
    assert found(to("10.244.0.0/16", "br0"), places=(wide, PodPlaces())) == ()


def test_without_places_only_what_plugins_name_so_is_told() -> None:
    assert found(*CALICO, places=NOWHERE) == ("cali+",)
    assert found(*BRIDGE, places=NOWHERE) == ()
    elsewhere = to("10.244.2.9/32", "cali9")
    assert found(elsewhere) == ()


def test_what_does_not_tell_pods_apart_is_not_told() -> None:
    """By Cilium's and Antrea's devices flows of pods pass as well as others."""
    through = ip_address("10.244.1.1")
    assert found(to("10.244.1.0/24", "cilium_host", hop=through)) == ()
    assert found(to("10.244.1.0/24", "antrea-gw0")) == ()
    assert found(to("10.244.1.0/24", "lo")) == ()
    # The node's own address in the network of its pods is none of them.
    assert found(to("10.244.1.1/32", "cali1"), own=("10.244.1.1",)) == ()
