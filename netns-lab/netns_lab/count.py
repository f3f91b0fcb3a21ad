"""Which packet arrived where: packet sockets that tell flows by their tags.

Every packet has landed by the time sendmmsg() returns, since veth delivers within it; so the
counting goes in lock-step: send a batch, read every ring until it is empty.

Source: packet(7), raw(7).
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from analyzer.model.addresses import IPV4
from netns_lab import filters
from netns_lab.columns import Columns, RawSocketAddress
from netns_lab.gates import Gate
from netns_lab.layout import ANSWER, PacketLayout
from netns_lab.messages import Messages
from netns_lab.namespace import Namespace
from netns_lab.ring import Ring, Slots
from netns_lab.servers import FAMILIES, PACKET_INFO, make_room
from netns_lab.topology import Host, LabTopology

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
_SYN: Final = 0x02
_SYN_ACK: Final = 0x12
_RST_ACK: Final = 0x14

#: Tags of flows, and of each where it arrived.
Landed = tuple[list[int], Sequence[RawSocketAddress]]
#: Tags of flows, and whether they were answered; False: refused.
Answered = tuple[list[int], bool]


class Arrivals:
    """The first packets of flows that come to one host."""

    def __init__(self, host: Host, layout: PacketLayout) -> None:
        program = filters.arrivals(layout)
        slot = _SHORT if layout.version == IPV4 else _LONG
        self._ring = Ring(
            host.namespace, host.device, layout.ethertype, program, slot=slot, most=_ROOM
        )
        self._columns = Columns(self._ring.slots, layout)

    def take(self) -> Iterator[Landed]:
        """Give what has come since."""
        columns = self._columns
        for first, last in self._ring.take():
            yield columns.tags(first, last), columns.to.read(first, last)

    def waiting(self) -> int:
        """Return how many packets there are to take."""
        return self._ring.waiting()

    def dropped(self) -> int:
        """Return how many packets found no room since the last call."""
        return self._ring.dropped()

    def close(self) -> None:
        """Stop."""
        self._ring.close()


class ReturnedPackets:
    """What comes back to one device of the client."""

    def __init__(self, host: Host, layout: PacketLayout) -> None:
        self._layout = layout
        program = filters.answers(layout, host.mac)
        self._ring = Ring(
            host.namespace, host.device, layout.ethertype, program, slot=_LONG, most=_ROOM
        )
        self._columns = Columns(self._ring.slots, layout)
        self._quoted = self._columns.quoted()

    def take(self, *sockaddrs: RawSocketAddress) -> Iterator[tuple[RawSocketAddress, Answered]]:
        """Give what has come since from the socket addresses asked for, and from which."""
        for first, last in self._ring.take():
            protocols = self._columns.protocols(first, last)
            of_icmp = protocols.count(self._layout.icmp)
            for sockaddr in sockaddrs:
                if not of_icmp:
                    found = _answered(self._columns, self._layout, first, last, sockaddr)
                elif of_icmp == len(protocols):
                    found = self._refused(first, last, sockaddr)
                else:
                    found = self._one_by_one(first, protocols, sockaddr)
                for each in found:
                    yield sockaddr, each

    def forget(self) -> None:
        """Pass over what was received so far: of other routes, with which the ring may be full."""
        for _ in self.take():
            pass
        self.dropped()

    def _one_by_one(
        self, first: int, protocols: bytes, sockaddr: RawSocketAddress
    ) -> Iterator[Answered]:
        for at, protocol in enumerate(protocols, first):
            if protocol != self._layout.icmp:
                yield from _answered(self._columns, self._layout, at, at + 1, sockaddr)
            else:
                yield from self._refused(at, at + 1, sockaddr)

    def _refused(self, first: int, last: int, sockaddr: RawSocketAddress) -> Iterator[Answered]:
        """Give the flows that errors of ICMP quote."""
        sockaddrs, tags = self._quoted
        told, were_for_it = tags[first:last].tolist(), sockaddrs.which_are(sockaddr, first, last)
        yield told if were_for_it is None else _where(told, were_for_it), False

    def dropped(self) -> int:
        """Return how many packets found no room since the last call."""
        return self._ring.dropped()

    def close(self) -> None:
        """Stop."""
        self._ring.close()


def _answered(
    columns: Columns, layout: PacketLayout, first: int, last: int, sockaddr: RawSocketAddress
) -> Iterator[Answered]:
    """Give the answers among some packets that are no errors of ICMP."""
    from_there = columns.of.which_are(sockaddr, first, last)
    if layout.protocol != "tcp":
        tags = columns.tags(first, last)
        if layout.protocol == "udp":  # at the node, the first packets of flows are here too
            marks = columns.marks(first, last)
            if marks.count(ANSWER) != len(marks):
                of = from_there or [True] * len(marks)
                from_there = [a and b == ANSWER for a, b in zip(of, marks, strict=True)]
        yield tags if from_there is None else _where(tags, from_there), True
        return
    flags, tags = columns.flags(first, last), columns.acknowledged(first, last)
    if from_there is None and flags.count(_SYN_ACK) == len(flags):
        yield tags, True
        return
    from_there = from_there or [True] * len(flags)
    is_open = [each & _SYN_ACK == _SYN_ACK for each in flags]
    yield _where(tags, [a and b for a, b in zip(from_there, is_open, strict=True)]), True
    is_refused = [each & _RST_ACK == _RST_ACK for each in flags]
    yield _where(tags, [a and b for a, b in zip(from_there, is_refused, strict=True)]), False


def _where(tags: list[int], holds: list[bool]) -> list[int]:
    return [tag for tag, true in zip(tags, holds, strict=True) if true]


class LocalDelivery:
    """The packets of one protocol that a namespace's own IP stack takes, behind INPUT.

    A raw(7) socket: the addresses are those after DNAT and after un-DNAT. It does not tell what
    it drops; that shows as unaccounted. One of IPv6 leaves the header out, whose addresses are told
    beside the packet (ipv6(7)).
    """

    def __init__(self, namespace: Namespace, layout: PacketLayout) -> None:
        self._layout = layout
        self._socket = namespace.socket(FAMILIES[layout.version], socket.SOCK_RAW, layout.number)
        make_room(self._socket)
        buffer = bytearray(_SHORT * BATCH)
        if layout.version == IPV4:
            self._messages = Messages(buffer, _SHORT)
            self._columns = Columns(Slots(memoryview(buffer), _SHORT, 0), layout)
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
        self._columns = Columns(packets, layout, ends)

    def take(
        self, *sockaddrs: RawSocketAddress
    ) -> Iterator[tuple[Landed, list[tuple[RawSocketAddress, Answered]]]]:
        """Give what has come since: to this host, and from the socket addresses asked for."""
        while count := self._messages.receive(self._socket.fileno()):
            yield (
                self._landed(count),
                [
                    (sockaddr, each)
                    for sockaddr in sockaddrs
                    for each in _answered(self._columns, self._layout, 0, count, sockaddr)
                ],
            )

    def _landed(self, count: int) -> Landed:
        columns = self._columns
        match self._layout.protocol:
            case "tcp":
                first = [each & _SYN_ACK == _SYN for each in columns.flags(0, count)]
            case "udp":
                first = [each != ANSWER for each in columns.marks(0, count)]
            case _:  # nothing answers
                first = [True] * count
        if not any(first):
            return [], []
        went = columns.to.read(0, count)
        at = [each for each, true in zip(went, first, strict=True) if true]
        return _where(columns.tags(0, count), first), at

    def forget(self) -> None:
        """Pass over what has come since."""
        while self._messages.receive(self._socket.fileno()):
            pass


class Captures:
    """All that hears the flows of one protocol in a lab, for as long as the lab is there.

    To close a packet socket takes the kernel a grace period of RCU: they serve for all routes.
    """

    def __init__(self, topology: LabTopology, layout: PacketLayout) -> None:
        self.hosts = [Arrivals(host, layout) for host in topology.hosts]
        self.node = LocalDelivery(topology.node, layout)
        #: Of other nodes with rules of their own: what comes to the nodes themselves.
        self.gates = [LocalDelivery(each.namespace, layout) for each in topology.gates]
        self._layout = layout
        self._silent: dict[Namespace, Arrivals] = {}
        self._lost = 0
        ends = (topology.client, topology.outside, topology.elsewhere)
        self.clients = [ReturnedPackets(host, layout) for host in ends]
        self._rings: list[Arrivals | ReturnedPackets] = [*self.hosts, *self.clients]

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
        """Pass over what was received so far."""
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


def close_all(rings: Iterable[Arrivals | ReturnedPackets]) -> None:
    """Stop hearing; each socket in a thread of its own, since each has to wait."""
    threads = [threading.Thread(target=each.close) for each in rings]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
