from __future__ import annotations

from ipaddress import IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.addresses import (
    Address,
    address_and_port_from_text,
    address_from_text,
    address_to_text,
    network_from_text,
    network_to_text,
    packet_address,
)
from tests.support.effort import examples


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("fd00::1", "fd00::1"),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.1"),
        ("::10.0.0.1", "::10.0.0.1"),
        ("::1", "::1"),
        ("::ffff", "::ffff"),
        ("::1:0", "::0.1.0.0"),
        ("64:ff9b::10.0.0.1", "64:ff9b::a00:1"),
    ],
)
def test_only_mapped_and_compatible_addresses_are_printed_with_dots(
    address: str, text: str
) -> None:
    assert address_to_text(ip_address(address)) == text


@examples(60, 2_000)
@given(st.ip_addresses() | st.integers(0, 2**48 - 1).map(IPv6Address))
def test_an_address_survives_its_text(address: Address) -> None:
    assert address_from_text(address_to_text(address)) == address


@pytest.mark.parametrize("text", ["", "10.0.0", "10.0.0.256", "10.0.0.1/32", "fd00::1::2", "node"])
def test_other_text_is_no_address(text: str) -> None:
    assert address_from_text(text) is None


@pytest.mark.parametrize(
    ("text", "address", "port"),
    [
        ("10.0.0.1", "10.0.0.1", None),
        ("10.0.0.1:80", "10.0.0.1", 80),
        ("10.0.0.1:65535", "10.0.0.1", 65535),
        ("fd00::1", "fd00::1", None),
        ("[fd00::1]", "fd00::1", None),
        ("[fd00::1]:80", "fd00::1", 80),
        # Without brackets the last group is a part of the address.
        ("fd00::1:80", "fd00::1:80", None),
    ],
)
def test_a_port_stands_behind_an_address(text: str, address: str, port: int | None) -> None:
    assert address_and_port_from_text(text) == (ip_address(address), port)


@pytest.mark.parametrize(
    "text",
    [
        *("10.0.0.1:", "10.0.0.1:65536", "10.0.0.1:-1", "10.0.0.1:http", "10.0.0.1:080080"),
        *("[10.0.0.1]:80", "[fd00::1]80", "[fd00::1", "fd00::1]:80", ":80", "[]:80"),
        *("1:2:3:4:5:6:7:8:80", "10.0.0.1:\uff18\uff10"),
    ],
)
def test_other_text_is_no_address_with_a_port(text: str) -> None:
    assert address_and_port_from_text(text) is None


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("10.1.2.3/16", "10.1.0.0/16"),
        ("10.1.2.3/255.255.0.0", "10.1.0.0/16"),
        ("10.1.2.3", "10.1.2.3/32"),
        ("fd00::1/64", "fd00::/64"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("0.0.0.0/0.0.0.0", "0.0.0.0/0"),
    ],
)
def test_host_bits_of_a_network_are_cleared(text: str, network: str) -> None:
    assert network_from_text(text) == ip_network(network)


@pytest.mark.parametrize("text", ["10.1.2.3/0.0.0.255", "10.1.2.3/255.0.255.0", "10.1.2.3/33", "x"])
def test_a_mask_that_is_no_prefix_is_no_network(text: str) -> None:
    assert network_from_text(text) is None


def test_a_network_is_printed_with_its_prefix_length() -> None:
    assert network_to_text(ip_network("10.1.2.3/32")) == "10.1.2.3/32"
    assert network_to_text(ip_network("::ffff:10.1.0.0/112")) == "::ffff:10.1.0.0/112"


@pytest.mark.parametrize(
    ("address", "packets"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("::10.0.0.1", "::10.0.0.1"),
        ("fe80::1%eth0", "fe80::1"),
        ("fd00::1", "fd00::1"),
    ],
)
def test_packets_have_neither_a_scope_nor_mapped_addresses(address: str, packets: str) -> None:
    assert packet_address(ip_address(address)) == ip_address(packets)
