"""What captured frames are, beside what scapy makes of the same bytes."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netns_lab.decoding import CUT, FRAGMENTS, Fragment, Incomplete, Segment, decoder

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
    inet6.IPv6(src="fd00::5", dst="fd00:96::a") / inet6.IPv6ExtHdrFragment(m=1, id=1 << 20),
    inet6.IPv6(src="fd00::5", dst="fd00:96::a") / inet6.IPv6ExtHdrFragment(m=1, offset=9, id=7),
    inet6.IPv6(src="fd00::5", dst="fd00:96::a") / inet6.IPv6ExtHdrFragment(offset=9),
    # Whole in spite of it (RFC 6946).
    inet6.IPv6(src="fd00::5", dst="fd00:96::a") / inet6.IPv6ExtHdrFragment(),
    inet6.IPv6(src="fd00::5", dst="fd00:96::a")
    / inet6.IPv6ExtHdrHopByHop()
    / inet6.IPv6ExtHdrFragment()
    / inet6.IPv6ExtHdrDestOpt(),
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
    network = packet[inet.IP] if inet.IP in packet else packet[inet6.IPv6]
    of, to = (ip_address(each).packed for each in (network.src, network.dst))
    part = fragment_of(packet)
    if part is not None and not part.is_first:
        last = packet[inet6.IPv6ExtHdrFragment].nh if inet6.IPv6 in packet else network.proto
        name = {6: "tcp", 17: "udp", 132: "sctp"}.get(last)
        return FRAGMENTS if name is None else Incomplete(name, (of, None), (to, None), part)
    for name, layer in (("tcp", inet.TCP), ("udp", inet.UDP), ("sctp", sctp.SCTP)):
        if layer in packet:
            segment = packet[layer]
            ends = (of, segment.sport), (to, segment.dport)
            if part is not None:
                return Incomplete(name, *ends, part)
            opens = name == "udp" or sctp.SCTPChunkInit in segment
            if name == "tcp":
                opens = "S" in str(segment.flags) and "A" not in str(segment.flags)
            return Segment(name, *ends, opens)
    return None if part is None else FRAGMENTS


def fragment_of(packet: Any) -> Fragment | None:
    """Return which part scapy takes a packet for; None if it is whole."""
    if inet.IP in packet:
        ip = packet[inet.IP]
        part = Fragment(ip.id, not ip.frag, not ip.flags.MF)
    elif inet6.IPv6ExtHdrFragment in packet:
        header = packet[inet6.IPv6ExtHdrFragment]
        part = Fragment(header.id, not header.offset, not header.m)
    else:
        return None
    return None if part.is_first and part.is_last else part


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
    found, whole = decode(data[:length]), decode(data)
    if not isinstance(found, Incomplete):
        assert found in (CUT, whole)
        return
    # What is visible of it is as in the whole.
    assert found.fragment in (None, getattr(whole, "fragment", found.fragment))
    if isinstance(whole, str):  # behind extension headers that the capture does not have
        assert found.protocol is None
        return
    assert found.protocol in (None, whole.protocol)
    for seen, end in ((found.source, whole.source), (found.destination, whole.destination)):
        assert seen in (end, (end[0], None))


@given(frames(), st.data())
def test_what_is_cut_behind_its_addresses_keeps_them(made: tuple[int, Any], data: Any) -> None:
    kind, packet = made
    whole = bytes(packet)
    decode = decoder(kind)
    assert decode is not None
    expected = decode(whole)
    if isinstance(expected, str):
        return
    network = packet[inet.IP] if inet.IP in packet else packet[inet6.IPv6]
    least = len(whole) - len(bytes(network)) + (20 if inet.IP in packet else 40)
    found = decode(whole[: data.draw(st.integers(least, len(whole)))])
    assert not isinstance(found, str)
    assert (found.source[0], found.destination[0]) == (expected.source[0], expected.destination[0])


@given(st.sampled_from(sorted(LINKS)), st.binary(max_size=120))
def test_any_bytes_are_something(kind: int, data: bytes) -> None:
    decode = decoder(kind)
    assert decode is not None
    assert isinstance(decode(data), str | Segment | Incomplete)


def test_a_link_type_that_nobody_knows_has_no_decoder() -> None:
    assert decoder(147) is None
