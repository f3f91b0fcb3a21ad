from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, ip_address, ip_network

from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.intervals import holds
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


@st.composite
def some_routes(draw: st.DrawFn) -> Routes:
    """Return routes to networks in and beside one another, close to 10.0.0.0."""
    found = []
    for _ in range(draw(st.integers(0, 8))):
        length = draw(st.sampled_from((0, 1, 8, 28, 29, 30, 31, 32)))
        first = (0x0A000000 + draw(st.integers(0, 31))) >> (32 - length) << (32 - length)
        device = draw(st.sampled_from((None, "eth0", "eth1", "cni0")))
        found.append(KernelRoute(IPv4Network((first, length)), device, draw(st.integers(0, 2))))
    return Routes((*found, route("::/0", "six")))


@given(some_routes(), st.integers(0, 63) | st.sampled_from((1 << 31, (1 << 32) - 1 - 0x0A000000)))
def test_each_address_has_the_device_that_its_own_look_up_finds(routes: Routes, at: int) -> None:
    address = IPv4Address(0x0A000000 + at)
    by_device = routes.by_device(4)
    found = [device for device, held in by_device if holds(held, int(address))]
    device = routes.device(address)
    assert found == ([] if device is None else [device])
    assert len({each for each, _ in by_device}) == len(by_device)
