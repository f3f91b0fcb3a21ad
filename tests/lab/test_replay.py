from __future__ import annotations

from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

replay = pytest.importorskip("netns_lab.replay", reason="scapy is not installed")
inet = pytest.importorskip("scapy.layers.inet")
l2 = pytest.importorskip("scapy.layers.l2")

CLIENTS = (IPv4Address("10.244.1.250"), IPv4Address("203.0.113.9"))
MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
ROOM = 2 * 64_512


@given(st.sampled_from(["tcp", "udp"]), st.integers(0, 2**32 - 1), st.integers(1, 65_535))
def test_every_patched_packet_has_the_checksums_that_scapy_computes(
    protocol: str, number: int, port: int
) -> None:
    flows = replay.Flows(protocol, (IPv4Address("10.96.0.10"), port), CLIENTS, MACS)
    frame = bytes(flows.frame(number, ROOM))
    packet = l2.Ether(frame)
    segment = packet[inet.UDP if protocol == "udp" else inet.TCP]
    address, source_port = flows.source(number % ROOM)
    assert packet[inet.IP].src == str(IPv4Address(address))
    assert (segment.sport, segment.dport) == (source_port, port)
    tag = segment.seq if protocol == "tcp" else int.from_bytes(bytes(segment.payload)[:4])
    assert tag == number
    del packet[inet.IP].chksum
    del segment.chksum
    assert bytes(packet) == frame


@given(st.lists(st.integers(0, ROOM - 1), min_size=2, max_size=2, unique=True))
def test_no_two_flows_share_source_address_and_port(numbers: list[int]) -> None:
    flows = replay.Flows("udp", (IPv4Address("10.96.0.10"), 53), CLIENTS, MACS)
    assert flows.source(numbers[0]) != flows.source(numbers[1])


def test_other_protocols_are_refused() -> None:
    from netns_lab.errors import LabError

    with pytest.raises(LabError, match="tcp and udp so far, not sctp"):
        replay.Flows("sctp", (IPv4Address("10.96.0.10"), 1), CLIENTS, MACS)
