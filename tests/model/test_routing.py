from __future__ import annotations

from ipaddress import ip_address, ip_network

from analyzer.model.routing import KernelRoute, Routes

POD, OUTSIDE = ip_address("10.1.2.3"), ip_address("192.0.2.1")


def route(network: str, device: str | None, metric: int = 0) -> KernelRoute:
    return KernelRoute(ip_network(network), device, metric)


def test_the_longest_prefix_counts() -> None:
    routes = Routes(
        (route("0.0.0.0/0", "eth0"), route("10.1.2.0/24", "cni0"), route("10.0.0.0/8", "x"))
    )
    assert routes.device(POD) == "cni0"
    assert routes.device(OUTSIDE) == "eth0"


def test_of_equal_networks_the_least_metric_counts() -> None:
    routes = Routes((route("10.0.0.0/8", "slow", 600), route("10.0.0.0/8", "fast", 100)))
    assert routes.device(POD) == "fast"


def test_a_metric_does_not_beat_a_longer_prefix() -> None:
    routes = Routes((route("10.0.0.0/8", "eth0", 0), route("10.1.0.0/16", "eth1", 900)))
    assert routes.device(POD) == "eth1"


def test_a_longer_prefix_by_an_unknown_device_hides_the_others() -> None:
    assert Routes((route("0.0.0.0/0", "eth0"), route("10.0.0.0/8", None))).device(POD) is None


def test_no_device_is_known_without_a_route_or_an_address() -> None:
    assert Routes().device(POD) is None
    assert Routes((route("10.0.0.0/8", "eth0"),)).device(OUTSIDE) is None
    assert Routes((route("0.0.0.0/0", "eth0"),)).device(None) is None


def test_routes_of_the_other_ip_version_are_left_alone() -> None:
    routes = Routes((route("::/0", "six"), route("0.0.0.0/0", "four")))
    assert routes.device(POD) == "four"
    assert routes.device(ip_address("2001:db8::1")) == "six"
