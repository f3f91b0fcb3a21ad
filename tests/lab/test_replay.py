from __future__ import annotations

import sys
from functools import cache
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netns_lab.layout import LINK, PacketLayout

replay = pytest.importorskip("netns_lab.replay", reason="scapy is not installed")
from netns_lab.columns import tag_of  # noqa: E402  # with scapy only

inet = pytest.importorskip("scapy.layers.inet")
inet6 = pytest.importorskip("scapy.layers.inet6")
l2 = pytest.importorskip("scapy.layers.l2")
sctp = pytest.importorskip("scapy.layers.sctp")

CLIENTS = {
    4: (IPv4Address("10.244.1.250"), IPv4Address("203.0.113.9")),
    6: (IPv6Address("fd00:10:244:1::fa"), IPv6Address("2001:db8::9")),
}
TO = {4: IPv4Address("10.96.0.10"), 6: IPv6Address("fd00:10:96::a")}
MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
PORTS = 64_512


@cache
def flows(version: int, protocol: str, port: int) -> Any:
    layout = PacketLayout(version, protocol)
    return replay.Flows(layout, (TO[version], port), CLIENTS[version], MACS, PORTS + 100)


@given(
    st.sampled_from([4, 6]),
    st.sampled_from(["tcp", "udp"]),
    st.integers(0, PORTS + 99) | st.integers(PORTS - 3, PORTS + 3),
    st.sampled_from([1, 53, 65_535]),
)
def test_every_patched_packet_has_the_checksums_that_scapy_computes(
    version: int, protocol: str, number: int, port: int
) -> None:
    made = flows(version, protocol, port)
    frame = made.frame(number)
    packet = l2.Ether(frame)
    segment = packet[inet.UDP if protocol == "udp" else inet.TCP]
    address, source_port = made.source(number)
    layer = packet[inet.IP if version == 4 else inet6.IPv6]
    assert layer.src == str(address)
    assert (segment.sport, segment.dport) == (source_port, port)
    tag = segment.seq.to_bytes(4) if protocol == "tcp" else bytes(segment.payload)[:4]
    at = number // PORTS
    assert tag_of(at, source_port) == int.from_bytes(tag, sys.byteorder)
    if version == 4:
        del layer.chksum
    del segment.chksum
    assert bytes(packet) == frame


@given(
    st.sampled_from([4, 6]),
    st.sampled_from(["tcp", "udp"]),
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 65_535), st.integers(0, 2**15 - 1)),
        min_size=1,
        max_size=5,
    ),
)
def test_a_flow_whose_port_was_chosen_has_its_tag_and_its_checksums(
    version: int, protocol: str, chosen: list[tuple[int, int, int]]
) -> None:
    layout = PacketLayout(version, protocol)
    wanted = [(CLIENTS[version][at], port, number) for at, port, number in chosen]
    made = replay.ChosenFlows(layout, (TO[version], 53), MACS, wanted)
    for at, (client, port, number) in enumerate(wanted):
        frame = made.frame(at)
        packet = l2.Ether(frame)
        segment = packet[inet.UDP if protocol == "udp" else inet.TCP]
        layer = packet[inet.IP if version == 4 else inet6.IPv6]
        assert (layer.src, segment.sport, segment.dport) == (str(client), port, 53)
        tag = segment.seq.to_bytes(4) if protocol == "tcp" else bytes(segment.payload)[:4]
        assert tag_of(number, port) == int.from_bytes(tag, sys.byteorder)
        assert made.source(at) == (client, port)
        if version == 4:
            del layer.chksum
        del segment.chksum
        assert bytes(packet) == frame


def test_no_two_flows_share_a_source_or_a_tag() -> None:
    made = flows(4, "udp", 53)
    numbers = range(made.room)
    assert len(set(map(made.source, numbers))) == made.room
    tag = slice(LINK + PacketLayout(4, "udp").tag, LINK + PacketLayout(4, "udp").tag + 4)
    assert len({made.frame(number)[tag] for number in numbers}) == made.room


@given(st.sampled_from([4, 6]), st.integers(1, 9), st.integers(1, 9))
def test_clients_in_turn_each_send_by_one_port_before_the_next(
    version: int, number: int, port: int
) -> None:
    clients = [CLIENTS[version][0] + at for at in range(number)]
    layout = PacketLayout(version, "udp")
    made = replay.Flows(layout, (TO[version], port), clients, MACS, 25, in_turn=True)
    assert made.room == -(-25 // number) * number
    sources = [made.source(at) for at in range(made.room)]
    assert [address for address, _ in sources[:number]] == clients
    assert len({source_port for _, source_port in sources}) == made.room // number
    for at, (address, source_port) in enumerate(sources):
        packet = l2.Ether(made.frame(at))
        assert packet[inet.IP if version == 4 else inet6.IPv6].src == str(address)
        assert packet[inet.UDP].sport == source_port
        tag = tag_of(at % number, source_port)
        assert bytes(packet[inet.UDP].payload)[:4] == tag.to_bytes(4, sys.byteorder)


@given(st.sampled_from([4, 6]), st.integers(0, PORTS + 99))
def test_an_init_of_sctp_has_its_tag_and_its_port(version: int, number: int) -> None:
    made = flows(version, "sctp", 2905)
    packet = l2.Ether(made.frame(number))
    address, source_port = made.source(number)
    assert packet[inet.IP if version == 4 else inet6.IPv6].src == str(address)
    assert (packet[sctp.SCTP].sport, packet[sctp.SCTP].dport) == (source_port, 2905)
    tag = packet[sctp.SCTPChunkInit].init_tag.to_bytes(4)
    assert tag_of(number // PORTS, source_port) == int.from_bytes(tag, sys.byteorder)
    if version == 4:
        del packet[inet.IP].chksum
        assert bytes(packet) == made.frame(number)
