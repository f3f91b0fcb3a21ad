from __future__ import annotations

import json
from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from analyzer.errors import InputError
from analyzer.model.routing import KernelRoute, Routes
from analyzer.parsers.iproute import parse_addresses, parse_routes


def written(*lists: Any) -> bytes:
    return "\n".join(map(json.dumps, lists)).encode()


def routes(*given: dict[str, Any]) -> tuple[KernelRoute, ...]:
    return parse_routes(written(list(given)), "routes.json").routes


def test_the_addresses_of_all_links_are_read() -> None:
    data = written(
        [
            {"ifname": "lo", "addr_info": [{"local": "127.0.0.1"}, {"local": "::1"}]},
            {"ifname": "eth0", "addr_info": [{"local": "172.16.0.1", "prefixlen": 24}]},
            {"ifname": "down"},
            {},
        ]
    )
    want = tuple(map(ip_address, ("127.0.0.1", "::1", "172.16.0.1")))
    assert parse_addresses(data, "addresses.json") == want


def test_a_route_has_a_network_and_a_device() -> None:
    (found,) = routes({"dst": "10.1.0.0/24", "dev": "cni0", "metric": 100})
    assert found == KernelRoute(ip_network("10.1.0.0/24"), "cni0", 100)


def test_a_route_to_one_address_has_no_prefix_length() -> None:
    (found,) = routes({"dst": "10.1.0.7", "dev": "veth7"})
    assert found.network == ip_network("10.1.0.7/32")


def test_the_default_route_is_of_the_ip_version_of_the_others_in_its_list() -> None:
    four = [{"dst": "default", "gateway": "172.16.0.254", "dev": "eth0"}]
    six = [{"dst": "fd00::/64", "dev": "eth0"}, {"dst": "default", "dev": "eth0"}]
    found = parse_routes(written(four, six), "routes.json")
    assert [str(route.network) for route in found.routes] == ["0.0.0.0/0", "fd00::/64", "::/0"]


@pytest.mark.parametrize(
    "more",
    [
        {"type": "blackhole", "dev": "eth0"},
        {"type": "unreachable"},
        {"flags": ["dead", "linkdown"], "dev": "eth0"},
        {"flags": ["linkdown"], "dev": "eth0"},
        # By several devices.
        {"nexthops": [{"dev": "eth0"}, {"dev": "eth1"}]},
        {"dev": 7},
    ],
)
def test_a_route_by_no_certain_device_is_kept_without_one(more: dict[str, Any]) -> None:
    found = Routes(routes({"dst": "default", "dev": "eth0"}, {"dst": "10.0.0.0/8", **more}))
    assert found.device(ip_address("10.1.0.1")) is None
    assert found.device(ip_address("192.0.2.1")) == "eth0"


def test_a_local_route_has_its_device() -> None:
    (found,) = routes({"dst": "172.16.0.1", "dev": "lo", "type": "local", "flags": []})
    assert found.device == "lo"


def test_what_names_no_network_is_left_out() -> None:
    found = routes({"dst": "nowhere", "dev": "x"}, {"dev": "x"}, {"dst": "10.0.0.0/8", "dev": "y"})
    assert [route.device for route in found] == ["y"]


def test_a_route_has_a_next_hop_of_either_ip_version() -> None:
    found = routes(
        {"dst": "10.0.0.0/8", "gateway": "172.16.0.254", "dev": "eth0"},
        {"dst": "10.1.0.0/16", "via": {"family": "inet6", "host": "fe80::1"}, "dev": "eth0"},
        {"dst": "10.2.0.0/16", "dev": "cni0", "scope": "link"},
    )
    hops = ip_address("172.16.0.254"), ip_address("fe80::1"), None
    assert tuple(route.hop for route in found) == hops


def test_a_default_route_with_a_router_preference_is_of_ipv6() -> None:
    (found,) = routes({"dst": "default", "dev": "tun0", "metric": 1024, "pref": "medium"})
    assert found.network == ip_network("::/0")
    assert found.is_default


def test_a_node_need_not_have_routes_of_an_ip_version() -> None:
    for nothing in (b"", b"\n", b"[]", b"[ ]\n"):
        assert parse_routes(nothing, "f") == Routes()


@pytest.mark.parametrize("data", [b"{}", b"[", b"[] x", b'[{"dst": 1}]', b"[[[[]]]]", b"7"])
def test_anything_else_is_refused_saying_what_was_expected(data: bytes) -> None:
    with pytest.raises(InputError, match=r"^f: .*`ip -j address`"):
        parse_addresses(data, "f")
    with pytest.raises(InputError, match=r"^f: .*`ip -j route`"):
        parse_routes(data, "f")
    with pytest.raises(InputError, match=r"^f: .*`ip -j address`"):
        parse_addresses(b"", "f")
