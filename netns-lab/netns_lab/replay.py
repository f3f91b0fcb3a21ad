"""New flows as packets: built once by scapy, then patched and sent. Only `pcap` has scapy too.

scapy builds one packet of each kind; copies of it get their addresses, source ports and tags. Those
of a batch stand in a window of memory, which the processor keeps at hand, and for the next batch
get other ports and tags in two strokes. Flow number i has its own source address and port, so that
each is new to conntrack.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Sequence
from functools import cache
from ipaddress import ip_address
from typing import Final

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.layers.sctp import SCTP, SCTPChunkInit
from scapy.packet import Packet, Raw

from analyzer.model.addresses import IPV4, Address
from netns_lab.errors import LabError
from netns_lab.layout import LINK, PacketLayout
from netns_lab.messages import Messages
from netns_lab.sources import CLIENT_PORTS

#: Bytes behind the header of UDP: the tag and as many zeros.
PAYLOAD: Final = 8
_MOST: Final = 0xFFFF
#: Where the checksum of an IPv4 header stands.
_OF_HEADER: Final = 10
#: Bytes of the MAC addresses, with which a frame begins.
_MACS: Final = 12
#: Packets that stand ready: a batch.
_WINDOW: Final = 256


class Flows:
    """The first packets of new flows to one address and port.

    Args:
        room: how many there are; then their sources come again.
        avoid: ports that no client has.
        in_turn: each client sends one before the first sends another.
        to: a struct sockaddr, where the sender's IP stack sends them, without the link's header.
        number: of the first client in tags, where flows of others are on their way too.

    Raises:
        LabError: there are no clients.
    """

    def __init__(
        self,
        layout: PacketLayout,
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
        if not clients:
            raise LabError("rules tell apart all addresses that a client of a route could have")
        self._layout = layout
        self._first = number
        self.clients = tuple(clients)
        self._destination, self._macs = destination, macs
        self.ports, *self._in_memory = _ports(avoid)
        turn = len(self.clients) if in_turn else 0
        self._in_turn = turn
        self.room = -(-room // turn) * turn if turn else room
        held = max(1, _WINDOW // turn) * turn if turn else _WINDOW
        self._window = bytearray().join(self._held(held))
        self.size = len(self._window) // held
        #: The client whose packets are in the window.
        self._client = 0
        self._halves = memoryview(self._window).cast("H")
        self._messages = Messages(self._window, self.size, skip=LINK if to else 0, to=to)
        #: Numbers of flows that the sender's own stack refused to send.
        self.kept_back: list[int] = []

    def _held(self, number: int) -> Iterator[bytes]:
        """Yield the packets that stand in the window first, without ports and tags."""
        if self._in_turn:
            templates = [self._template(client) for client in range(self._in_turn)]
            yield from templates * (number // self._in_turn)
        else:
            yield self._template(0) * number

    def send(self, descriptor: int, first: int, count: int) -> int:
        """Send `count` flows, and return how many of them the sender's own stack refused.

        Raises:
            OSError: an error other than a rule or a route that refuses a packet.
        """
        kept, last = 0, first + count
        while first < last:
            slot, number = self._put(first, last)
            kept += self._messages.send(descriptor, slot, number)
            self.kept_back += [each - slot + first for each in self._messages.kept_back]
            self._messages.kept_back.clear()
            first += number
        return kept

    def _put(self, first: int, last: int) -> tuple[int, int]:
        """Put flows into the window, and return the slot of the first, and how many have room."""
        if self._in_turn:
            port, slot = divmod(first, self._in_turn)
            number = min(last - first, self._messages.count - slot)
            turns = slice(port, port + -(-(slot + number) // self._in_turn))
            self._patch(0, *(_repeated(each[turns], self._in_turn) for each in self._in_memory))
            return slot, number
        client, port = divmod(first, len(self.ports))
        if client != self._client:
            self._window[:] = self._template(client) * self._messages.count
            self._client = client
        number = min(last - first, self._messages.count, len(self.ports) - port)
        self._patch(0, *(each[port : port + number] for each in self._in_memory))
        return 0, number

    def _patch(self, slot: int, ports: array[int], inverted: array[int]) -> None:
        """Write ports, and the halves of tags that go with them, from a slot on."""
        step = self.size // 2
        for at, values in ((self._layout.source_port, ports), (self._layout.tag, inverted)):
            first = slot * step + (LINK + at) // 2
            self._halves[first : first + (len(values) - 1) * step + 1 : step] = values

    def source(self, number: int) -> tuple[Address, int]:
        """Return the address and port that flow `number` comes from."""
        if self._in_turn:
            port, at = divmod(number, self._in_turn)
        else:
            at, port = divmod(number, len(self.ports))
        return self.clients[at], self.ports[port]

    def frame(self, number: int) -> bytes:
        """Return the packet of flow `number`."""
        slot, _ = self._put(number, number + 1)
        return bytes(self._window[slot * self.size : (slot + 1) * self.size])

    def _template(self, client: int, step: int = 1) -> bytes:
        """Return a client's packet, of even length, whose port and tag are still to be put in.

        Its tag has the number of the client, times `step`. Port 0 and 0xffff in its tag add up to
        what any port and its inverted one do.
        """
        number = step * (self._first + client) << 1
        ends = self.clients[client], *self._destination
        return _addressed(self._layout, *ends, self._macs, number)


class ChosenFlows(Flows):
    """The first packets of flows whose clients and ports are given.

    Args:
        flows: of each its client, its port, and a number by which it differs from all others that
            have this port: its tag has both.
    """

    def __init__(
        self,
        layout: PacketLayout,
        destination: tuple[Address, int],
        macs: tuple[str, str],
        flows: Sequence[tuple[Address, int, int]],
        to: bytes | None = None,
    ) -> None:
        self._layout = layout
        self._first = 0
        self.room = len(flows)
        self.clients = tuple(dict.fromkeys(client for client, _, _ in flows))
        self._destination, self._macs = destination, macs
        self._chosen = flows
        templates = {each: self._template(at, 0) for at, each in enumerate(self.clients)}
        self._window = bytearray()
        for client, port, number in flows:
            frame = bytearray(templates[client])
            _choose(frame, layout, port, number)
            self._window += frame
        self.size = len(self._window) // len(flows)
        self._messages = Messages(self._window, self.size, skip=LINK if to else 0, to=to)
        self.kept_back = []

    def _put(self, first: int, last: int) -> tuple[int, int]:
        """Return the slot of a flow, and how many there are: all are in the window."""
        return first, last - first

    def source(self, number: int) -> tuple[Address, int]:
        """Return the address and port that flow `number` comes from."""
        client, port, _ = self._chosen[number]
        return client, port


def _choose(frame: bytearray, layout: PacketLayout, port: int, number: int) -> None:
    """Put in port and tag, of which the number alone changes the sum."""
    at = LINK + layout.source_port
    frame[at : at + 2] = port.to_bytes(2)
    at = LINK + layout.tag
    frame[at : at + 4] = (port ^ _MOST).to_bytes(2) + (number << 1).to_bytes(2)
    if layout.protocol != "sctp":  # its checksum is not checked
        _add_to_checksum(frame, LINK + layout.checksum, number << 1)
        _never_none(frame, layout)


def _repeated(values: array[int], times: int) -> array[int]:
    """Return each value so many times."""
    if times == 1:
        return values
    found = array("H")
    for value in values:
        found.extend(array("H", [value]) * times)
    return found


def _addressed(
    layout: PacketLayout,
    client: Address,
    to: Address,
    port: int,
    macs: tuple[str, str],
    number: int,
) -> bytes:
    """Return the packet that scapy has built for its kind, with other ends and a number in its tag.

    scapy takes a millisecond for each.
    """
    frame = bytearray(_of_kind(layout))
    frame[:_MACS] = bytes.fromhex("".join(macs).replace(":", ""))
    changed = 0
    for at, address in ((layout.source, client), (layout.destination, to)):
        first, last = LINK + at, LINK + at + len(address.packed)
        changed += _words(address.packed) - _words(frame[first:last])
        frame[first:last] = address.packed
    if layout.version == IPV4:
        _add_to_checksum(frame, LINK + _OF_HEADER, changed)
    at = LINK + layout.source_port + 2
    frame[at : at + 2] = port.to_bytes(2)
    at = LINK + layout.tag + 2
    frame[at : at + 2] = number.to_bytes(2)
    if layout.protocol != "sctp":  # a CRC of the chunk alone, which is not checked
        _add_to_checksum(frame, LINK + layout.checksum, changed + port + number)
        _never_none(frame, layout)
    return bytes(frame)


@cache
def _of_kind(layout: PacketLayout) -> bytes:
    """Return a packet that scapy builds; its addresses and ports are filled in later."""
    unset = ip_address(0 if layout.version == IPV4 else bytes(16))
    return bytes(_packet(layout, unset, (unset, 0), ("00:00:00:00:00:00",) * 2, _MOST << 16))


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


def _never_none(frame: bytearray, layout: PacketLayout) -> None:
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
    layout: PacketLayout,
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
