"""What captured frames are, beside what scapy makes of the same bytes."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netns_lab.decoding import CUT, FRAGMENTS, Segment, decoder

config = pytest.importorskip("scapy.config", reason="scapy is not installed")
inet = pytest.importorskip("scapy.layers.inet")
inet6 = pytest.importorskip("scapy.layers.inet6")
l2 = pytest.importorskip("scapy.layers.l2")
sctp = pytest.importorskip("scapy.layers.sctp")
raw = pytest.importorskip("scapy.packet").Raw

PORTS = st.integers(0, 65_535)
#: With addresses: scapy would ask the host's network for what is left out.
ETHER = l2.Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02")
LINKS: dict[int, list[Any]] = {
    1: [
        ETHER,
        ETHER / l2.Dot1Q(vlan=7),
        ETHER / l2.Dot1AD(vlan=8) / l2.Dot1Q(vlan=9),
    ],
    101: [None],
    113: [l2.CookedLinux(), l2.CookedLinux() / l2.Dot1Q(vlan=3)],
    276: [l2.CookedLinuxV2()],
    228: [None],
    229: [None],
    0: [l2.Loopback()],
}
IPV4_HEADERS = [
    inet.IP(src="10.244.0.5", dst="10.96.0.10"),
    inet.IP(src="10.244.0.5", dst="10.96.0.10", options=[inet.IPOption_NOP()] * 4),
    inet.IP(src="10.244.0.5", dst="10.96.0.10", flags="MF"),
    inet.IP(src="10.244.0.5", dst="10.96.0.10", frag=9),
    inet.IP(src="10.244.0.5", dst="10.96.0.10", flags="DF", tos=4),
]
IPV6_HEADERS = [
    inet6.IPv6(src="fd00::5", dst="fd00:96::a"),
    inet6.IPv6(src="fd00::5", dst="fd00:96::a") / inet6.IPv6ExtHdrHopByHop(),
    inet6.IPv6(src="fd00::5", dst="fd00:96::a")
    / inet6.IPv6ExtHdrDestOpt()
    / inet6.IPv6ExtHdrRouting(addresses=["fd00::9"]),
    inet6.IPv6(src="fd00::5", dst="fd00:96::a") / inet6.IPv6ExtHdrFragment(m=1),
]


@st.composite
def segments(draw: st.DrawFn) -> Any:
    """Packets of protocols that have flows, and of some that have none."""
    ends = {"sport": draw(PORTS), "dport": draw(PORTS)}
    return draw(
        st.sampled_from(
            [
                inet.TCP(**ends, flags=draw(st.integers(0, 255))),
                inet.UDP(**ends) / raw(draw(st.binary(max_size=9))),
                sctp.SCTP(**ends) / sctp.SCTPChunkInit(),
                sctp.SCTP(**ends) / sctp.SCTPChunkData(data=b"abcd"),
                inet.ICMP(),
            ]
        )
    )


@st.composite
def frames(draw: st.DrawFn) -> tuple[int, Any]:
    """A link type, and a packet that scapy made."""
    kind = draw(st.sampled_from(sorted(LINKS)))
    link = draw(st.sampled_from(LINKS[kind]))
    headers = {228: IPV4_HEADERS, 229: IPV6_HEADERS}.get(kind, IPV4_HEADERS + IPV6_HEADERS)
    packet = draw(st.sampled_from(headers)) / draw(segments())
    if kind == 0:
        link = l2.Loopback(type=2 if inet.IP in packet else 10)
    return kind, packet if link is None else link / packet


def by_scapy(kind: int, data: bytes) -> Any:
    """Return what scapy reads out of a frame."""
    layer = config.conf.l2types.num2layer
    version = data[0] >> 4
    of_raw = inet.IP if version == 4 else inet6.IPv6
    packet = of_raw(data) if kind in (101, 228, 229) else layer[kind](data)
    if inet.IP in packet and (packet[inet.IP].flags.MF or packet[inet.IP].frag):
        return FRAGMENTS
    if inet6.IPv6ExtHdrFragment in packet:
        return FRAGMENTS
    network = packet[inet.IP] if inet.IP in packet else packet[inet6.IPv6]
    for name, layer in (("tcp", inet.TCP), ("udp", inet.UDP), ("sctp", sctp.SCTP)):
        if layer in packet:
            segment = packet[layer]
            opens = name == "udp" or sctp.SCTPChunkInit in segment
            if name == "tcp":
                opens = "S" in str(segment.flags) and "A" not in str(segment.flags)
            return Segment(
                name,
                (ip_address(network.src).packed, segment.sport),
                (ip_address(network.dst).packed, segment.dport),
                opens,
            )
    return None


@given(frames())
def test_a_frame_is_what_scapy_takes_it_for(made: tuple[int, Any]) -> None:
    kind, packet = made
    data = bytes(packet)
    decode = decoder(kind)
    assert decode is not None
    found = decode(data)
    expected = by_scapy(kind, data)
    if expected is None:
        assert isinstance(found, str)
        assert found.startswith(("ICMP", "IP protocol"))
    else:
        assert found == expected


@given(frames(), st.integers(0, 200))
def test_what_is_cut_short_is_said_to_be_or_is_still_told_apart(
    made: tuple[int, Any], length: int
) -> None:
    kind, packet = made
    data = bytes(packet)
    decode = decoder(kind)
    assert decode is not None
    assert decode(data[:length]) in (CUT, decode(data))


@given(st.sampled_from(sorted(LINKS)), st.binary(max_size=120))
def test_any_bytes_are_something(kind: int, data: bytes) -> None:
    decode = decoder(kind)
    assert decode is not None
    assert isinstance(decode(data), str | Segment)


def test_a_link_type_that_nobody_knows_has_no_decoder() -> None:
    assert decoder(147) is None
