"""Addresses keep their prefixes and their classes, and no two become one."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.anonymise.addresses import AddressMap, blocks
from analyzer.model.addresses import Address
from tests.support.strategies.iptables_values import networks

KEY = b"k" * 32
keys = st.binary(min_size=16, max_size=16)
pairs = st.tuples(st.ip_addresses(v=4), st.ip_addresses(v=4)) | st.tuples(
    st.ip_addresses(v=6), st.ip_addresses(v=6)
)


def shared(one: Address, other: Address) -> int:
    """Return how many bits two addresses have in common from the beginning."""
    return one.max_prefixlen - (int(one) ^ int(other)).bit_length()


@given(keys, pairs)
def test_what_two_addresses_share_they_share_afterwards(
    key: bytes, pair: tuple[Address, Address]
) -> None:
    found = AddressMap(key)
    one, other = map(found.address, pair)
    assert shared(one, other) == shared(*pair)


@given(keys, st.integers(0, 0xFFFFFFFF), st.integers(1, 8))
def test_neighbours_share_what_they_did(key: bytes, number: int, bits: int) -> None:
    """Random pairs differ in their first bits; these differ in their last."""
    found = AddressMap(key)
    pair = IPv4Address(number), IPv4Address(number ^ (1 << bits - 1))
    assert shared(*map(found.address, pair)) == shared(*pair)


@given(keys, networks)
def test_a_network_is_that_of_its_addresses(key: bytes, network: object) -> None:
    found = AddressMap(key)
    given_network = ip_network(str(network))
    new = found.network(given_network)
    assert new.prefixlen == given_network.prefixlen
    for each in (given_network.network_address, given_network.broadcast_address):
        assert found.address(each) in new


@pytest.mark.parametrize("version", [4, 6])
def test_all_addresses_of_a_network_are_those_of_the_new_one(version: int) -> None:
    network = ip_network({4: "10.3.4.0/22", 6: "fd00:1::/118"}[version])
    found = AddressMap(KEY)
    assert {found.address(each) for each in network} == set(found.network(network))


@pytest.mark.parametrize(
    "network",
    ["0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/24", "255.255.255.255/32", "::/127", "ff02::/112"],
)
@given(key=keys, number=st.integers(0))
def test_some_addresses_stay(key: bytes, number: int, network: str) -> None:
    inside = ip_network(network)
    address = inside[number % inside.num_addresses]
    assert AddressMap(key).address(address) == address


@pytest.mark.parametrize(
    "network",
    ["169.254.0.0/16", "224.0.0.0/4", "2000::/3", "fd00::/8", "fe80::/64", "fe80::/10", "ff00::/8"],
)
@given(key=keys, number=st.integers(0))
def test_classes_stay_with_other_addresses_in_them(key: bytes, number: int, network: str) -> None:
    inside = ip_network(network)
    address = inside[number % inside.num_addresses]
    new = AddressMap(key).address(address)
    assert new in inside
    for name in ("is_loopback", "is_link_local", "is_multicast", "is_unspecified"):
        assert getattr(new, name) == getattr(address, name)


@given(keys, st.ip_addresses(v=4))
def test_no_other_address_stays(key: bytes, address: IPv4Address) -> None:
    kept = any(address in ip_network(n) for n in ("0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/24"))
    if not kept and str(address) != "255.255.255.255":
        assert AddressMap(key).address(address) != address


@pytest.mark.parametrize("network", ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"])
@given(key=keys, number=st.integers(0))
def test_private_networks_leave_their_range(key: bytes, number: int, network: str) -> None:
    """So that a new address is none of the same cluster's by chance."""
    inside = ip_network(network)
    assert AddressMap(key).address(inside[number % inside.num_addresses]) not in inside


@given(keys, st.ip_addresses(v=4))
def test_an_address_in_an_address_is_that_address(key: bytes, address: IPv4Address) -> None:
    found = AddressMap(key)
    new = found.address(address)
    for prefix in ("::ffff:0:0", "64:ff9b::"):
        within = IPv6Address(int(IPv6Address(prefix)) | int(address))
        assert found.address(within) == IPv6Address(int(IPv6Address(prefix)) | int(new))


def test_another_key_gives_other_addresses() -> None:
    address = ip_address("10.96.0.10")
    assert len({AddressMap(bytes([n]) * 16).address(address) for n in range(20)}) > 15


def test_a_range_is_its_networks() -> None:
    assert list(map(str, blocks(ip_address("10.0.0.1"), ip_address("10.0.0.4")))) == [
        "10.0.0.1/32",
        "10.0.0.2/31",
        "10.0.0.4/32",
    ]
