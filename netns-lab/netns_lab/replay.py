"""New flows as packets: built once by scapy, then patched and sent. Only `pcap` has scapy too.

scapy builds one packet for each client address; copies of it get their source ports and tags in
two strokes, and all stand ready before the first is sent. Flow number i has its own source address
and port, so that each is new to conntrack.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.layers.sctp import SCTP, SCTPChunkInit
from scapy.packet import Packet, Raw

from analyzer.model.addresses import IPV4, Address
from netns_lab.layout import LINK, Layout
from netns_lab.messages import Messages
from netns_lab.sources import CLIENT_PORTS

#: Bytes behind the header of UDP: the tag and as many zeros.
PAYLOAD: Final = 8
_MOST: Final = 0xFFFF
#: Where the checksum of an IPv4 header stands.
_OF_HEADER: Final = 10


class Flows:
    """The first packets of new flows to one address and port.

    Args:
        room: how many there are; then their sources come again.
        avoid: ports that no client has.
        in_turn: each client sends one before the first sends another.
        to: a struct sockaddr, where the sender's IP stack sends them, without the link's header.
        number: of the first client in tags, where flows of others are on their way too.
    """

    def __init__(
        self,
        layout: Layout,
        destination: tuple[Address, int],
        clients: Sequence[Address],
        macs: tuple[str, str],
        room: int,
        to: bytes | None = None,
        *,
        avoid: frozenset[int] = frozenset(),
        in_turn: bool = False,
        number: int = 0,
    ) -> None:
        self._layout = layout
        self._first = number
        self.room = room
        self.clients = tuple(clients)
        self.ports, *self._in_memory = _ports(avoid)
        templates = self._templates(destination, macs)
        self._in_turn = len(self.clients) if in_turn else 0
        self.frames = self._turns(list(templates)) if in_turn else self._filled(templates)
        self.messages = Messages(self.frames, self.size, skip=LINK if to else 0, to=to)

    def _filled(self, templates: Iterator[bytes]) -> bytearray:
        """Return frames of one client with every port, then those of the next."""
        ports, inverted = self._in_memory
        frames = bytearray()
        while len(frames) < self.room * (self.size or 1):
            template = next(templates)
            self.size = len(template)
            count = min(len(ports), self.room - len(frames) // self.size)
            some = bytearray(template * count)
            self._put(some, ports[:count], inverted[:count])
            frames += some
        return frames

    def _turns(self, templates: list[bytes]) -> bytearray:
        """Return a frame of each client with one port, then of each with the next."""
        self.size = len(templates[0])
        turns = -(-self.room // len(templates))
        self.room = turns * len(templates)
        frames = bytearray(b"".join(templates) * turns)
        ports, inverted = (
            array("H", (port for port in each[:turns] for _ in templates))
            for each in self._in_memory
        )
        self._put(frames, ports, inverted)
        return frames

    def _put(self, frames: bytearray, ports: array[int], inverted: array[int]) -> None:
        halves = memoryview(frames).cast("H")
        step = self.size // 2
        halves[(LINK + self._layout.source_port) // 2 :: step] = ports
        halves[(LINK + self._layout.tag) // 2 :: step] = inverted
        halves.release()

    #: Bytes of a frame.
    size: int = 0

    def source(self, number: int) -> tuple[Address, int]:
        """Return the address and port that flow `number` comes from."""
        if self._in_turn:
            port, at = divmod(number, self._in_turn)
        else:
            at, port = divmod(number, len(self.ports))
        return self.clients[at], self.ports[port]

    def frame(self, number: int) -> bytes:
        """Return the packet of flow `number`."""
        return bytes(self.frames[number * self.size : (number + 1) * self.size])

    def _templates(
        self, destination: tuple[Address, int], macs: tuple[str, str], step: int = 1
    ) -> Iterator[bytes]:
        """Give for each client a packet of even length whose port and tag are still to be put in.

        Tags have the number of the client, times `step`. Port 0 and 0xffff in its tag add up to
        what any port and its inverted one do.
        """
        first = bytes(_packet(self._layout, self.clients[0], destination, macs, _MOST << 16))
        numbers = range(self._first, self._first + len(self.clients))
        for number, client in zip(numbers, self.clients, strict=True):
            yield (
                first if not number else _of_client(first, self._layout, client, step * number << 1)
            )


class ChosenFlows(Flows):
    """The first packets of flows whose clients and ports are given.

    Args:
        flows: of each its client, its port, and a number by which it differs from all others that
            have this port: its tag has both.
    """

    def __init__(
        self,
        layout: Layout,
        destination: tuple[Address, int],
        macs: tuple[str, str],
        flows: Sequence[tuple[Address, int, int]],
        to: bytes | None = None,
    ) -> None:
        self._layout = layout
        self._first = 0
        self.room = len(flows)
        self.clients = tuple(dict.fromkeys(client for client, _, _ in flows))
        self._chosen = flows
        templates = dict(zip(self.clients, self._templates(destination, macs, 0), strict=True))
        self.frames = bytearray()
        for client, port, number in flows:
            frame = bytearray(templates[client])
            self._patch(frame, port, number)
            self.frames += frame
        self.size = len(self.frames) // len(flows)
        self.messages = Messages(self.frames, self.size, skip=LINK if to else 0, to=to)

    def _patch(self, frame: bytearray, port: int, number: int) -> None:
        """Put in port and tag, of which the number alone changes the sum."""
        layout = self._layout
        at = LINK + layout.source_port
        frame[at : at + 2] = port.to_bytes(2)
        at = LINK + layout.tag
        frame[at : at + 4] = (port ^ _MOST).to_bytes(2) + (number << 1).to_bytes(2)
        if layout.protocol != "sctp":  # its checksum is not checked
            _add_to_checksum(frame, LINK + layout.checksum, number << 1)
            _never_none(frame, layout)

    def source(self, number: int) -> tuple[Address, int]:
        """Return the address and port that flow `number` comes from."""
        client, port, _ = self._chosen[number]
        return client, port


def _of_client(first: bytes, layout: Layout, client: Address, number: int) -> bytes:
    """Return the packet of the first client as another one sends it, with a number in its tag.

    scapy takes a millisecond for each.
    """
    frame = bytearray(first)
    at = LINK + layout.source
    last = at + len(client.packed)
    changed = _words(client.packed) - _words(frame[at:last])
    frame[at:last] = client.packed
    at = LINK + layout.tag + 2
    frame[at : at + 2] = number.to_bytes(2)
    if layout.version == IPV4:
        _add_to_checksum(frame, LINK + _OF_HEADER, changed)
    if layout.protocol == "sctp":  # a CRC of the chunk alone, which is not checked
        return bytes(frame)
    _add_to_checksum(frame, LINK + layout.checksum, changed + number)
    _never_none(frame, layout)
    return bytes(frame)


def _words(data: bytes | bytearray) -> int:
    """Return the sum of words of two bytes."""
    return sum(int.from_bytes(data[at : at + 2]) for at in range(0, len(data), 2))


def _add_to_checksum(frame: bytearray, at: int, more: int) -> None:
    """Let the checksum at a place hold for words whose sum is so much more, or less.

    Source: RFC 1624, equation 3.
    """
    total = (int.from_bytes(frame[at : at + 2]) ^ _MOST) + more
    # Modulo 0xffff, in which no header sums up to 0: it has a version in it.
    frame[at : at + 2] = ((total % _MOST or _MOST) ^ _MOST).to_bytes(2)


def _never_none(frame: bytearray, layout: Layout) -> None:
    """Write a checksum of 0 as UDP does: it would say that there is none."""
    at = LINK + layout.checksum
    if layout.protocol == "udp" and frame[at : at + 2] == bytes(2):
        frame[at : at + 2] = _MOST.to_bytes(2)


@cache
def _ports(avoid: frozenset[int]) -> tuple[Sequence[int], array[int], array[int]]:
    """Return the ports of clients, as they stand in memory, and all their bits inverted."""
    plain = [port for port in CLIENT_PORTS if port not in avoid] if avoid else CLIENT_PORTS
    ports = array("H", plain)
    if sys.byteorder == "little":
        ports.byteswap()
    inverted = array("H")
    inverted.frombytes(ports.tobytes().translate(bytes(range(255, -1, -1))))
    return plain, ports, inverted


def _packet(
    layout: Layout,
    client: Address,
    destination: tuple[Address, int],
    macs: tuple[str, str],
    tag: int,
) -> Packet:
    address, port = destination
    to, from_ = macs
    link = Ether(dst=to, src=from_)
    ends = {"src": str(client), "dst": str(address)}
    below = link / (IP(flags="DF", **ends) if layout.version == IPV4 else IPv6(**ends))
    if layout.protocol == "udp":
        return below / UDP(sport=0, dport=port) / Raw(tag.to_bytes(4) + bytes(PAYLOAD - 4))
    if layout.protocol == "sctp":
        return below / SCTP(sport=0, dport=port) / SCTPChunkInit(init_tag=tag, a_rwnd=65_536)
    return below / TCP(sport=0, dport=port, flags="S", seq=tag, options=[("MSS", 1460)])
