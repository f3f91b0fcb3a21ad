"""Classification of captured frames: the first packet of a flow, a later one, or neither.

Only what tells flows apart is decoded, so that a capture of a million packets takes seconds. scapy
takes many times as long; tests compare this with it.

Source: https://www.tcpdump.org/linktypes.html; IEEE 802.1Q; RFC 768, 791, 8200, 9260, 9293.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from analyzer.model.addresses import IPV4, IPV6
from netns_lab.layout import PROTOCOLS

_IPV4, _IPV6, _ARP = 0x0800, 0x86DD, 0x0806
#: Length of a header in bytes: without options, and without extension headers.
_IPV4_HEADER, _IPV6_HEADER = 20, 40
_VLANS: Final = frozenset({0x8100, 0x88A8, 0x9100, 0x9200})
#: For BSD loopback; the number of AF_INET6 differs between systems.
_FAMILIES: Final = {2: _IPV4, 10: _IPV6, 24: _IPV6, 28: _IPV6, 30: _IPV6}
_NAMES: Final = {number: name for name, number in PROTOCOLS.items()}
_ICMP: Final = {1: "ICMP", 58: "ICMPv6"}
_FRAGMENT_HEADER: Final = 44
_AUTHENTICATION: Final = 51
#: Hop-by-hop options, routing, destination options, mobility, HIP, shim6.
_EXTENSIONS: Final = frozenset({0, 43, 60, 135, 139, 140})
_MORE_OR_OFFSET: Final = 0x3FFF
_SYN, _ACK = 0x02, 0x10
_INIT: Final = 1

#: Why a packet belongs to no flow; each is counted.
CUT: Final = "truncated by the capture, or damaged"
FRAGMENTS: Final = "fragments of IP"
NOT_IP: Final = "not IP"


@dataclass(frozen=True, slots=True)
class Segment:
    """A packet of a flow.

    Attributes:
        source, destination: address as packed bytes, and port.
        opens: whether it can begin a flow: a TCP SYN, an SCTP INIT, any UDP datagram.
    """

    protocol: str
    source: tuple[bytes, int]
    destination: tuple[bytes, int]
    opens: bool


def decoder(link_type: int) -> Callable[[bytes], Segment | str] | None:
    """Return the decoder of a link type, None if unknown; it returns a segment, or a reason."""
    return _LINKS.get(link_type)


def _ethernet(frame: bytes) -> Segment | str:
    return _tagged(frame, 12)


def _cooked(frame: bytes) -> Segment | str:
    return _tagged(frame, 14)


def _cooked_2(frame: bytes) -> Segment | str:
    return _network(frame, 20, int.from_bytes(frame[:2]))


def _tagged(frame: bytes, at: int) -> Segment | str:
    """Decode from the EtherType on, after any VLAN tags."""
    kind = int.from_bytes(frame[at : at + 2])
    while kind in _VLANS:
        at += 4
        kind = int.from_bytes(frame[at : at + 2])
    return _network(frame, at + 2, kind)


def _loopback(frame: bytes) -> Segment | str:
    """Decode a frame that begins with the address family, in the byte order of its capturer."""
    family = min(int.from_bytes(frame[:4], order) for order in ("big", "little"))
    return _network(frame, 4, _FAMILIES.get(family, 0))


def _raw(frame: bytes) -> Segment | str:
    version = frame[0] >> 4 if frame else 0
    return _network(frame, 0, {IPV4: _IPV4, IPV6: _IPV6}.get(version, 0))


def _network(frame: bytes, at: int, kind: int) -> Segment | str:
    if len(frame) <= at:
        return CUT
    if kind == _IPV4:
        return _ipv4(frame, at)
    if kind == _IPV6:
        return _ipv6(frame, at)
    return "ARP" if kind == _ARP else NOT_IP


def _ipv4(frame: bytes, at: int) -> Segment | str:
    header = 4 * (frame[at] & 0x0F)
    if len(frame) < at + header or header < _IPV4_HEADER or frame[at] >> 4 != IPV4:
        return CUT
    if int.from_bytes(frame[at + 6 : at + 8]) & _MORE_OR_OFFSET:
        return FRAGMENTS
    ends = frame[at + 12 : at + 16], frame[at + 16 : at + 20]
    return _transport(frame, at + header, frame[at + 9], ends)


def _ipv6(frame: bytes, at: int) -> Segment | str:
    if len(frame) < at + _IPV6_HEADER or frame[at] >> 4 != IPV6:
        return CUT
    ends = frame[at + 8 : at + 24], frame[at + 24 : at + 40]
    protocol, at = frame[at + 6], at + 40
    while protocol in _EXTENSIONS or protocol == _AUTHENTICATION:
        if len(frame) < at + 8:
            return CUT
        unit, least = (4, 2) if protocol == _AUTHENTICATION else (8, 1)
        protocol, at = frame[at], at + unit * (frame[at + 1] + least)
    return FRAGMENTS if protocol == _FRAGMENT_HEADER else _transport(frame, at, protocol, ends)


def _transport(frame: bytes, at: int, number: int, ends: tuple[bytes, bytes]) -> Segment | str:
    protocol = _NAMES.get(number)
    if protocol is None:
        return _ICMP.get(number) or f"IP protocol {number}"
    opens = True
    if protocol == "tcp":
        if len(frame) < at + 14:
            return CUT
        opens = frame[at + 13] & (_SYN | _ACK) == _SYN
    elif protocol == "sctp":
        if len(frame) < at + 13:
            return CUT
        opens = frame[at + 12] == _INIT
    elif len(frame) < at + 8:
        return CUT
    ports = int.from_bytes(frame[at : at + 2]), int.from_bytes(frame[at + 2 : at + 4])
    source, destination = ((end, port) for end, port in zip(ends, ports, strict=True))
    return Segment(protocol, source, destination, opens)


_LINKS: Final[Mapping[int, Callable[[bytes], Segment | str]]] = {
    0: _loopback,  # NULL
    1: _ethernet,
    12: _raw,
    14: _raw,
    101: _raw,
    108: _loopback,  # LOOP
    113: _cooked,  # LINUX_SLL
    228: _raw,  # IPV4
    229: _raw,  # IPV6
    276: _cooked_2,  # LINUX_SLL2
}
