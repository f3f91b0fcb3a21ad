"""Which packet arrived where: packet sockets that tell flows by their tags.

Every packet has landed by the time sendmmsg() returns, since veth delivers within it; so the
counting goes in lock-step: send a batch, read every ring until it is empty.

Source: packet(7), raw(7).
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from analyzer.model.addresses import IPV4
from netns_lab import filters
from netns_lab.gates import Gate
from netns_lab.layout import Layout
from netns_lab.messages import Messages
from netns_lab.namespace import Namespace
from netns_lab.ring import Ring, Slots
from netns_lab.servers import FAMILIES, PACKET_INFO, make_room
from netns_lab.topology import Host, Topology

#: Packets sent before every ring is read; what the rings and an ordinary user's sockets hold is
#: more.
BATCH: Final = 256
_ROOM: Final = 4 * BATCH
#: Bytes of a slot: up to the tag, and up to the tag of a packet that an error of ICMP quotes.
_SHORT, _LONG = 128, 256
#: Room for a struct sockaddr_in6 in whole words, and where its address stands; where that of a
#: struct in6_pktinfo does behind its struct cmsghdr.
_NAME: Final = 32
_NAME_ADDRESS: Final = 8
_CONTROL_ADDRESS: Final = 16
#: Of an IPv4 address.
_OCTETS: Final = 4
_SYN: Final = 0x02
_SYN_ACK: Final = 0x12
_RST_ACK: Final = 0x14
#: What an acknowledgement is more than the tag, which is even, as both stand in memory.
_ACKNOWLEDGES: Final = int.from_bytes((1).to_bytes(4), sys.byteorder)

#: An address and a port as they stand in memory: words of the address, then the port.
RawDoor = tuple[int, ...]


def raw_door(address: bytes, port: int) -> RawDoor:
    """Return what a packet to or from an address and port has in memory."""
    view = memoryview(address + port.to_bytes(2))
    words = view[:4].cast("I") if len(address) == _OCTETS else view[:16].cast("Q")
    return (*words, view[len(address) :].cast("H")[0])


def door_of(raw: RawDoor) -> tuple[int, int]:
    """Return the address, as an integer, and the port."""
    *words, port = raw
    width = 4 if len(words) == 1 else 8
    address = b"".join(word.to_bytes(width, sys.byteorder) for word in words)
    return int.from_bytes(address), int.from_bytes(port.to_bytes(2, sys.byteorder))


def tag_of(client: int, port: int) -> int:
    """Return a flow's tag as it stands in memory."""
    tag = (port ^ 0xFFFF) << 16 | client << 1
    return int.from_bytes(tag.to_bytes(4), sys.byteorder)


def _port_in(tag: int) -> int:
    """Return the port in a tag, both as they stand in memory."""
    inverted = tag & 0xFFFF if sys.byteorder == "little" else tag >> 16
    return inverted ^ 0xFFFF


class _Columns:
    """The fields of packets that are asked for.

    Args:
        ends: words of source and destination addresses, if these are not in the slots.
    """

    def __init__(
        self, slots: Slots, layout: Layout, ends: tuple[Sequence[memoryview], ...] = ()
    ) -> None:
        self._slots = slots
        self._layout = layout
        self.tag = slots.column("I", layout.tag)
        if ends:
            source, destination = ends
            self.of = [*source, slots.column("H", layout.source_port)]
            self.to = [*destination, slots.column("H", layout.source_port + 2)]
        else:
            self.to = self._door(layout.destination, layout.source_port + 2)
            self.of = self._door(layout.source, layout.source_port)

    def _door(self, address: int, port: int) -> list[memoryview]:
        if self._layout.version == IPV4:
            words = [self._slots.column("I", address)]
        else:
            words = [self._slots.column("Q", address), self._slots.column("Q", address + 8)]
        return [*words, self._slots.column("H", port)]

    def answers(self) -> tuple[memoryview, memoryview, memoryview]:
        """Return protocols, flags of TCP and acknowledgements."""
        layout, slots = self._layout, self._slots
        return (
            slots.column("B", layout.next_protocol),
            slots.column("B", layout.flags),
            slots.column("I", layout.acknowledgement),
        )

    def quoted(self) -> tuple[list[memoryview], memoryview]:
        """Return whom a packet was for that an error of ICMP quotes, and its tag."""
        layout = self._layout
        inner = layout.quoted
        return (
            self._door(inner + layout.destination, inner + layout.source_port + 2),
            self._slots.column("I", inner + layout.tag),
        )


def _cut(columns: Sequence[memoryview], first: int, last: int) -> list[RawDoor]:
    return list(zip(*(column[first:last].tolist() for column in columns), strict=True))


#: Tags of flows, and of each where it arrived.
Landed = tuple[list[int], list[RawDoor]]
#: Tags of flows, and whether they were answered; False: refused.
Answered = tuple[list[int], bool]


class Arrivals:
    """The first packets of flows that come to one host."""

    def __init__(self, host: Host, layout: Layout) -> None:
        program = filters.arrivals(layout)
        slot = _SHORT if layout.version == IPV4 else _LONG
        self._ring = Ring(
            host.namespace, host.device, layout.ethertype, program, slot=slot, most=_ROOM
        )
        self._columns = _Columns(self._ring.slots, layout)

    def take(self, door: RawDoor | None = None) -> Iterator[Landed]:
        """Give what has come since, and not from `door`: who asked that may be here too."""
        columns = self._columns
        for first, last in self._ring.take():
            tags, doors = columns.tag[first:last].tolist(), _cut(columns.to, first, last)
            if door is not None:
                # To the port that asked, and from the door: an answer. The door alone may be what
                # the node has taken for its own when it masqueraded.
                others = [
                    of != door or to[-1] != _port_in(tag)
                    for tag, of, to in zip(tags, _cut(columns.of, first, last), doors, strict=True)
                ]
                tags = _where(tags, others)
                doors = [each for each, other in zip(doors, others, strict=True) if other]
            yield tags, doors

    def dropped(self) -> int:
        """Return how many packets found no room since the last call."""
        return self._ring.dropped()

    def close(self) -> None:
        """Stop."""
        self._ring.close()


class Answers:
    """What comes back to one device of the client."""

    def __init__(self, host: Host, layout: Layout) -> None:
        self._layout = layout
        program = filters.answers(layout)
        self._ring = Ring(
            host.namespace, host.device, layout.ethertype, program, slot=_LONG, most=_ROOM
        )
        self._columns = _Columns(self._ring.slots, layout)
        self._quoted = self._columns.quoted()

    def take(self, *doors: RawDoor) -> Iterator[tuple[RawDoor, Answered]]:
        """Give what has come since from the doors that were asked, and from which."""
        for first, last in self._ring.take():
            protocols = self._columns.answers()[0][first:last].tolist()
            of_icmp = self._layout.icmp in protocols
            for door in doors:
                if of_icmp:
                    found = self._one_by_one(first, last, protocols, door)
                else:
                    found = _answered(self._columns, self._layout, first, last, door)
                for each in found:
                    yield door, each

    def forget(self) -> None:
        """Pass over what was heard so far: of other routes, with which the ring may be full."""
        for _ in self.take():
            pass
        self.dropped()

    def _one_by_one(
        self, first: int, last: int, protocols: list[int], door: RawDoor
    ) -> Iterator[Answered]:
        doors, tags = self._quoted
        for at, protocol in enumerate(protocols, first):
            if protocol != self._layout.icmp:
                yield from _answered(self._columns, self._layout, at, at + 1, door)
            elif _cut(doors, at, at + 1) == [door]:
                yield tags[at : at + 1].tolist(), False
        assert last == first + len(protocols)

    def dropped(self) -> int:
        """Return how many packets found no room since the last call."""
        return self._ring.dropped()

    def close(self) -> None:
        """Stop."""
        self._ring.close()


def _answered(
    columns: _Columns, layout: Layout, first: int, last: int, door: RawDoor
) -> Iterator[Answered]:
    """Give the answers among some packets that are no errors of ICMP."""
    ends = [column[first:last].tolist() for column in columns.of]
    whole = all(each.count(word) == len(each) for each, word in zip(ends, door, strict=True))
    doors = [] if whole else list(zip(*ends, strict=True))
    if layout.protocol != "tcp":
        tags = columns.tag[first:last].tolist()
        yield tags if whole else _where(tags, [each == door for each in doors]), True
        return
    _, flags, acknowledgements = columns.answers()
    told = flags[first:last].tolist()
    tags = [number - _ACKNOWLEDGES for number in acknowledgements[first:last].tolist()]
    if whole and told.count(_SYN_ACK) == len(told):
        yield tags, True
        return
    from_door = [True] * len(told) if whole else [each == door for each in doors]
    is_open = [each & _SYN_ACK == _SYN_ACK for each in told]
    yield _where(tags, [a and b for a, b in zip(from_door, is_open, strict=True)]), True
    is_refused = [each & _RST_ACK == _RST_ACK for each in told]
    yield _where(tags, [a and b for a, b in zip(from_door, is_refused, strict=True)]), False


def _where(tags: list[int], holds: list[bool]) -> list[int]:
    return [tag for tag, true in zip(tags, holds, strict=True) if true]


class LocalDelivery:
    """The packets of one protocol that a namespace's own IP stack takes, behind INPUT.

    A raw(7) socket: the addresses are those after DNAT and after un-DNAT. It does not tell what
    it drops; that shows as unaccounted. One of IPv6 leaves the header out, whose addresses are told
    beside the packet (ipv6(7)).
    """

    def __init__(self, namespace: Namespace, layout: Layout) -> None:
        self._layout = layout
        self._socket = namespace.socket(FAMILIES[layout.version], socket.SOCK_RAW, layout.number)
        make_room(self._socket)
        buffer = bytearray(_SHORT * BATCH)
        if layout.version == IPV4:
            self._messages = Messages(buffer, _SHORT)
            self._columns = _Columns(Slots(memoryview(buffer), _SHORT, 0), layout)
            return
        info = PACKET_INFO[self._socket.family]
        self._socket.setsockopt(info.level, info.wanted, 1)
        control = info.control_size
        self._messages = Messages(buffer, _SHORT, name=_NAME, control=control)
        names = Slots(memoryview(self._messages.names), _NAME, 0)
        told = Slots(memoryview(self._messages.control), control, 0)
        ends = tuple(
            [each.column("Q", at), each.column("Q", at + 8)]
            for each, at in ((names, _NAME_ADDRESS), (told, _CONTROL_ADDRESS))
        )
        packets = Slots(memoryview(buffer), _SHORT, -layout.header)
        self._columns = _Columns(packets, layout, ends)

    def take(self, *doors: RawDoor) -> Iterator[tuple[Landed, list[tuple[RawDoor, Answered]]]]:
        """Give what has come since: to doors of this host, and from the doors that were asked."""
        while count := self._messages.receive(self._socket.fileno()):
            yield (
                self._landed(count, doors),
                [
                    (door, each)
                    for door in doors
                    for each in _answered(self._columns, self._layout, 0, count, door)
                ],
            )

    def _landed(self, count: int, doors: Sequence[RawDoor]) -> Landed:
        columns = self._columns
        came, went = _cut(columns.of, 0, count), _cut(columns.to, 0, count)
        first = [each not in doors for each in came]
        if self._layout.protocol == "tcp":
            flags = columns.answers()[1][:count].tolist()
            first = [a and f & _SYN_ACK == _SYN for a, f in zip(first, flags, strict=True)]
        tags = columns.tag[:count].tolist()
        at = [each for each, true in zip(went, first, strict=True) if true]
        return _where(tags, first), at

    def forget(self) -> None:
        """Pass over what has come since."""
        while self._messages.receive(self._socket.fileno()):
            pass


class Captures:
    """All that hears the flows of one protocol in a lab, for as long as the lab is there.

    To close a packet socket takes the kernel a grace period of RCU: they serve for all routes.
    """

    def __init__(self, topology: Topology, layout: Layout) -> None:
        self.hosts = [Arrivals(host, layout) for host in topology.hosts]
        self.node = LocalDelivery(topology.node, layout)
        #: Of other nodes with rules of their own: what comes to the nodes themselves.
        self.gates = [LocalDelivery(each.namespace, layout) for each in topology.gates]
        self._layout = layout
        self._silent: dict[Namespace, Arrivals] = {}
        self._lost = 0
        ends = (topology.client, topology.outside, topology.elsewhere)
        self.clients = [Answers(host, layout) for host in ends]
        self._rings: list[Arrivals | Answers] = [*self.hosts, *self.clients]

    @property
    def all_hosts(self) -> list[Arrivals]:
        """What hears at hosts, those before a silent node among them."""
        return [*self.hosts, *self._silent.values()]

    def hear_before(self, gate: Gate) -> None:
        """Hear what comes to a node that is silent: to its pods nothing comes any more."""
        namespace = gate.namespace
        self._silent[namespace] = Arrivals(Host(namespace, gate.mac), self._layout)

    def hear_behind(self, gate: Gate) -> None:
        """Hear again at a node's pods alone, of which each flow is seen once."""
        ring = self._silent.pop(gate.namespace)
        self._lost += ring.dropped()
        close_all([ring])

    def forget(self) -> None:
        """Pass over what was heard so far."""
        for host in self.all_hosts:
            for _ in host.take():
                pass
        for client in self.clients:
            client.forget()
        for each in (self.node, *self.gates):
            each.forget()
        self.dropped()

    def dropped(self) -> int:
        """Return how many packets found no room since the last call."""
        lost, self._lost = self._lost, 0
        return lost + sum(each.dropped() for each in (*self._rings, *self._silent.values()))

    def close(self) -> None:
        """Stop hearing."""
        close_all([*self._rings, *self._silent.values()])


def close_all(rings: Iterable[Arrivals | Answers]) -> None:
    """Stop hearing; each socket in a thread of its own, since each has to wait."""
    threads = [threading.Thread(target=each.close) for each in rings]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
