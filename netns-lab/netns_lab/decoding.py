"""Classification of captured frames: the first packet of a flow, a later one, either, or neither.

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
_HEADERS: Final = _EXTENSIONS | {_FRAGMENT_HEADER, _AUTHENTICATION}
#: Of the 16 bits that place a fragment: whether more follow, and its offset.
_MORE_4, _OFFSET_4 = 0x2000, 0x1FFF
_MORE_6, _OFFSET_6 = 0x0001, 0xFFF8
_SYN, _ACK = 0x02, 0x10
_INIT: Final = 1
#: Bytes of a transport header up to what says whether the packet begins a flow.
_SHOWN: Final = {"tcp": 14, "udp": 8, "sctp": 13}

#: Why a packet is taken for none of a flow; each is counted.
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


@dataclass(frozen=True, slots=True)
class Fragment:
    """Which part of a packet a fragment is.

    Attributes:
        datagram: the identification that all fragments of the packet have.
    """

    datagram: int
    is_first: bool
    is_last: bool


@dataclass(frozen=True, slots=True)
class Incomplete:
    """A packet that may begin a flow, which what the capture has of it does not show.

    Attributes:
        protocol: None if it is not visible.
        source, destination: address as packed bytes, and port; None if it is not visible.
        fragment: None if the packet is one whole, of which the capture has only the beginning.
    """

    protocol: str | None
    source: tuple[bytes, int | None]
    destination: tuple[bytes, int | None]
    fragment: Fragment | None = None


#: What a frame is: of a flow, perhaps of one, or why it is neither.
Decoded = Segment | Incomplete | str


def decoder(link_type: int) -> Callable[[bytes], Decoded] | None:
    """Return the decoder of a link type, None if unknown."""
    return _LINKS.get(link_type)


def _ethernet(frame: bytes) -> Decoded:
    return _tagged(frame, 12)


def _cooked(frame: bytes) -> Decoded:
    return _tagged(frame, 14)


def _cooked_2(frame: bytes) -> Decoded:
    return _network(frame, 20, int.from_bytes(frame[:2]))


def _tagged(frame: bytes, at: int) -> Decoded:
    """Decode from the EtherType on, after any VLAN tags."""
    kind = int.from_bytes(frame[at : at + 2])
    while kind in _VLANS:
        at += 4
        kind = int.from_bytes(frame[at : at + 2])
    return _network(frame, at + 2, kind)


def _loopback(frame: bytes) -> Decoded:
    """Decode a frame that begins with the address family, in the byte order of its capturer."""
    family = min(int.from_bytes(frame[:4], order) for order in ("big", "little"))
    return _network(frame, 4, _FAMILIES.get(family, 0))


def _raw(frame: bytes) -> Decoded:
    version = frame[0] >> 4 if frame else 0
    return _network(frame, 0, {IPV4: _IPV4, IPV6: _IPV6}.get(version, 0))


def _network(frame: bytes, at: int, kind: int) -> Decoded:
    if len(frame) <= at:
        return CUT
    if kind == _IPV4:
        return _ipv4(frame, at)
    if kind == _IPV6:
        return _ipv6(frame, at)
    return "ARP" if kind == _ARP else NOT_IP


def _ipv4(frame: bytes, at: int) -> Decoded:
    if len(frame) < at + _IPV4_HEADER or frame[at] >> 4 != IPV4:
        return CUT
    header = 4 * (frame[at] & 0x0F)
    if header < _IPV4_HEADER:
        return CUT
    ends = frame[at + 12 : at + 16], frame[at + 16 : at + 20]
    where = int.from_bytes(frame[at + 6 : at + 8])
    fragment = None
    if where & (_MORE_4 | _OFFSET_4):
        number = int.from_bytes(frame[at + 4 : at + 6])
        fragment = Fragment(number, not where & _OFFSET_4, not where & _MORE_4)
    return _transport(frame, at + header, frame[at + 9], ends, fragment)


def _ipv6(frame: bytes, at: int) -> Decoded:
    if len(frame) < at + _IPV6_HEADER or frame[at] >> 4 != IPV6:
        return CUT
    ends = frame[at + 8 : at + 24], frame[at + 24 : at + 40]
    protocol, at, fragment = frame[at + 6], at + 40, None
    while protocol in _HEADERS and (fragment is None or fragment.is_first):
        if len(frame) < at + 8:
            return _incomplete(None, ends, fragment=fragment)
        if protocol == _FRAGMENT_HEADER:
            where = int.from_bytes(frame[at + 2 : at + 4])
            # A packet may be whole in spite of such a header (RFC 6946).
            if where & (_MORE_6 | _OFFSET_6):
                number = int.from_bytes(frame[at + 4 : at + 8])
                fragment = Fragment(number, not where & _OFFSET_6, not where & _MORE_6)
            protocol, at = frame[at], at + 8
            continue
        unit, least = (4, 2) if protocol == _AUTHENTICATION else (8, 1)
        protocol, at = frame[at], at + unit * (frame[at + 1] + least)
    if protocol in _HEADERS:  # in front of it is what only the first fragment shows
        return _incomplete(None, ends, fragment=fragment)
    return _transport(frame, at, protocol, ends, fragment)


def _transport(
    frame: bytes, at: int, number: int, ends: tuple[bytes, bytes], fragment: Fragment | None
) -> Decoded:
    protocol = _NAMES.get(number)
    if protocol is None:
        return FRAGMENTS if fragment else _ICMP.get(number) or f"IP protocol {number}"
    if (fragment is not None and not fragment.is_first) or len(frame) < at + 4:
        return _incomplete(protocol, ends, fragment=fragment)
    ports = int.from_bytes(frame[at : at + 2]), int.from_bytes(frame[at + 2 : at + 4])
    if fragment is not None or len(frame) < at + _SHOWN[protocol]:
        return _incomplete(protocol, ends, ports, fragment)
    opens = True
    if protocol == "tcp":
        opens = frame[at + 13] & (_SYN | _ACK) == _SYN
    elif protocol == "sctp":
        opens = frame[at + 12] == _INIT
    source, destination = ((end, port) for end, port in zip(ends, ports, strict=True))
    return Segment(protocol, source, destination, opens)


def _incomplete(
    protocol: str | None,
    ends: tuple[bytes, bytes],
    ports: tuple[int | None, int | None] = (None, None),
    fragment: Fragment | None = None,
) -> Incomplete:
    return Incomplete(protocol, (ends[0], ports[0]), (ends[1], ports[1]), fragment)


_LINKS: Final[Mapping[int, Callable[[bytes], Decoded]]] = {
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
