"""A node with a device to the outside and one to its pods; packets sent, and where each came out.

Every packet has a number, in the payload of UDP and as the sequence number of TCP, by which it
is known wherever it comes out, and a sign by which the kernel traces it and no answer to it.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from analyzer.model.addresses import Address
from analyzer.model.routing import Routes
from analyzer.parsers.iproute import parse_addresses, parse_routes
from netns_lab.command import ip_batch, run
from netns_lab.namespace import Namespace
from tests.support.lab.random_rules import ADDRESSES, NODE, OTHER_POD

OUTSIDE: Final = IPv4Address("203.0.113.7")
#: Mark of packets to trace: the IPv4 identification, the IPv6 flow label. Packets sent in reply,
#: such as those of a reject, are not traced; nor is ICMP, which may have the same value by chance.
TRACED: Final = 0x6B6F
SERVICE6, POD6, OTHER_POD6, NODE6 = map(
    IPv6Address, ("fd00:10:2::4", "fd00:10:1::9", "fd00:10:1::8", "fd00:172::1")
)
OUTSIDE6: Final = IPv6Address("fd00:203::7")
ADDRESSES6: Final = (SERVICE6, POD6, OTHER_POD6, NODE6)
#: Who sends by which device; None: the node itself.
SOURCES: Final[Mapping[int, Mapping[str | None, Address]]] = {
    4: {"eth0": OUTSIDE, "pod0": OTHER_POD, None: NODE},
    6: {"eth0": OUTSIDE6, "pod0": OTHER_POD6, None: NODE6},
}
PROTOCOLS: Final = {"udp": 17, "tcp": 6}

_FIRST_PORT, _LAST_PORT = 1_024, 65_000
_ETHERTYPES: Final = {4: 0x0800, 6: 0x86DD}
_ALL: Final = 3
_OUTGOING: Final = 4
_FAMILIES: Final = {4: socket.AF_INET, 6: socket.AF_INET6}
_SYN: Final = 2


@dataclass(frozen=True)
class Asked:
    """A packet: where it comes in, or None if the node makes it, and where it is sent."""

    device: str | None
    source: Address
    destination: Address
    port: int
    protocol: str = "udp"

    def __str__(self) -> str:
        way = f"in by {self.device}" if self.device else "made here"
        return f"{self.protocol} {self.source} to {self.destination} {self.port}, {way}"


@dataclass(frozen=True)
class Seen:
    """A packet that came out.

    Attributes:
        device: by which; None: to a program of the node.
        source_port: None where it is the one that the packet was sent with.
    """

    device: str | None
    source: Address
    source_port: int | None
    destination: Address
    port: int


class Wired:
    """The node, its peers, and what was sent and came out."""

    def __init__(self) -> None:
        self.namespace = Namespace("node")
        self._peers = {"eth0": Namespace("outside"), "pod0": Namespace("pods")}
        self._links: dict[str, socket.socket] = {}
        self._frames: dict[str, bytes] = {}
        self._port, self._number = _FIRST_PORT, 0
        self._build()
        self._makers = {
            version: self.namespace.socket(family, socket.SOCK_RAW, socket.IPPROTO_RAW)
            for version, family in _FAMILIES.items()
        }
        self._takers = [
            self._taker(version, number) for version in _FAMILIES for number in PROTOCOLS.values()
        ]

    def _build(self) -> None:
        lines = ["link set lo up"]
        for at, device in enumerate(self._peers):
            lines.append(
                f"link add {device} address 02:00:00:00:00:0{at + 1} type veth "
                f"peer name {device} address 02:00:00:00:01:0{at + 1} "
                f"netns {self._peers[device].path}"
            )
        for name, value in (
            ("net/ipv4/conf/all/rp_filter", 0),
            ("net/ipv4/conf/default/rp_filter", 0),
            ("net/ipv4/conf/all/send_redirects", 0),
            ("net/ipv4/conf/default/send_redirects", 0),
            ("net/ipv6/conf/default/accept_ra", 0),
            ("net/ipv6/conf/default/addr_gen_mode", 1),
            ("net/ipv6/conf/default/mldv2_unsolicited_report_interval", 0),
        ):
            self.namespace.set(name, value)
        lines += [
            f"address add {NODE}/24 dev eth0",
            f"address add {NODE6}/64 dev eth0 nodad",
            "link set eth0 up",
            # REDIRECT drops what comes in by a device without an address.
            "address add 10.1.0.1/24 dev pod0",
            "address add fd00:10:1::1/64 dev pod0 nodad",
            "link set pod0 up",
            "route add default via 172.16.0.2 dev eth0",
            "route add default via fd00:172::2 dev eth0",
            "neighbour add 172.16.0.2 lladdr 02:00:00:00:01:01 dev eth0 nud permanent",
            "neighbour add fd00:172::2 lladdr 02:00:00:00:01:01 dev eth0 nud permanent",
            *(
                f"neighbour add {address} lladdr 02:00:00:00:01:02 dev pod0 nud permanent"
                for address in (ADDRESSES[1], ADDRESSES[2], POD6, OTHER_POD6)
            ),
        ]
        ip_batch(self.namespace, lines)
        self.namespace.set("net/ipv4/ip_forward", 1)
        self.namespace.set("net/ipv6/conf/all/forwarding", 1)
        for at, (device, peer) in enumerate(self._peers.items()):
            peer.set("net/ipv6/conf/all/disable_ipv6", 1)
            ip_batch(peer, [f"link set {device} up"])
            link = peer.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            link.bind((device, _ALL))
            link.setblocking(False)
            self._links[device] = link
            ends = bytes((2, 0, 0, 0, 0, at + 1)), bytes((2, 0, 0, 0, 1, at + 1))
            self._frames[device] = b"".join(ends)

    def _taker(self, version: int, protocol: int) -> tuple[int, int, socket.socket]:
        taker = self.namespace.socket(_FAMILIES[version], socket.SOCK_RAW, protocol)
        if version != 4:
            taker.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
        taker.setblocking(False)
        return version, protocol, taker

    @cached_property
    def addresses(self) -> tuple[Address, ...]:
        return parse_addresses(self._json("address"), "ip -j address")

    @cached_property
    def routes(self) -> Routes:
        return parse_routes(self._json("route"), "ip -j route")

    @cached_property
    def routes6(self) -> Routes:
        return parse_routes(self._json("-6", "route"), "ip -j -6 route")

    def _json(self, *words: str) -> bytes:
        return run(self.namespace, ["ip", "-j", *words]).stdout.encode()

    def emit(self, asked: Asked) -> None:
        """Send the first packet of a new flow."""
        self._port = self._port + 1 if self._port < _LAST_PORT else _FIRST_PORT
        self._number += 1
        packet = packet_of(asked, self._port, self._number)
        if asked.device is None:
            maker = self._makers[asked.destination.version]
            with contextlib.suppress(OSError):  # a rule has dropped or refused it
                maker.sendto(packet, (str(asked.destination), 0))
        else:
            kind = struct.pack(">H", _ETHERTYPES[asked.destination.version])
            self._links[asked.device].send(self._frames[asked.device] + kind + packet)

    def seen(self) -> list[Seen]:
        """Return where the last packet came out since this was asked last."""
        return [*self._taken(), *self._left()]

    def _left(self) -> Iterator[Seen]:
        for device, link in self._links.items():
            while True:
                try:
                    frame, where = link.recvfrom(2048)
                except BlockingIOError:
                    break
                if where[2] == _OUTGOING:
                    continue
                kind = int.from_bytes(frame[12:14], "big")
                for version, ethertype in _ETHERTYPES.items():
                    if kind == ethertype:
                        yield from self._of_packet(frame[14:], version, device)

    def _of_packet(self, packet: bytes, version: int, device: str | None) -> Iterator[Seen]:
        if version == 4:
            source, destination = packet[12:16], packet[16:20]
            protocol, body = packet[9], packet[20:]
        else:
            source, destination = packet[8:24], packet[24:40]
            protocol, body = packet[6], packet[40:]
        yield from self._of_body(body, protocol, (source, destination), device)

    def _of_body(
        self, body: bytes, protocol: int, ends: tuple[bytes, bytes], device: str | None
    ) -> Iterator[Seen]:
        source_port, port = struct.unpack_from(">HH", body)
        if protocol == PROTOCOLS["tcp"]:
            (number,) = struct.unpack_from(">I", body, 4)
            asks = body[13] == _SYN
        else:
            (number,) = struct.unpack_from(">I", body, 8) if len(body) >= 12 else (0,)
            asks = protocol == PROTOCOLS["udp"]
        if asks and number == self._number:
            source, destination = map(ip_address, ends)
            kept = None if source_port == self._port else source_port
            yield Seen(device, source, kept, destination, port)

    def _taken(self) -> Iterator[Seen]:
        for version, protocol, taker in self._takers:
            while True:
                try:
                    data, extra, _, sender = taker.recvmsg(2048, 64)
                except BlockingIOError:
                    break
                if version == 4:
                    yield from self._of_packet(data, version, None)
                    continue
                to = extra[0][2][:16]
                yield from self._of_body(data, protocol, (_packed(sender[0]), to), None)

    def forget(self) -> None:
        """Let conntrack forget all flows, so that ports can be used again."""
        run(self.namespace, ["conntrack", "-F"], check=False)


def _packed(text: str) -> bytes:
    return ip_address(text.partition("%")[0]).packed


def packet_of(asked: Asked, source_port: int, number: int) -> bytes:
    """Return an IP packet that is traced, with right checksums: conntrack looks at them."""
    protocol = PROTOCOLS[asked.protocol]
    ends = asked.source.packed + asked.destination.packed
    if asked.protocol == "udp":
        body = struct.pack(">HHHHI", source_port, asked.port, 12, 0, number)
        at = 6
    else:
        body = struct.pack(
            ">HHIIBBHHH", source_port, asked.port, number, 0, 5 << 4, _SYN, 1024, 0, 0
        )
        at = 16
    checksum = _checksum(ends + struct.pack(">HH", protocol, len(body)) + body)
    body = body[:at] + struct.pack(">H", checksum or 0xFFFF) + body[at + 2 :]
    if asked.source.version == 4:
        head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), TRACED, 0, 64, protocol, 0) + ends
        return head[:10] + struct.pack(">H", _checksum(head)) + head[12:] + body
    return struct.pack(">IHBB", 6 << 28 | TRACED, len(body), protocol, 64) + ends + body


def _checksum(data: bytes) -> int:
    """Source: RFC 1071."""
    words: tuple[int, ...] = struct.unpack(f">{len(data) // 2}H", data)
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
