"""What matches depend on besides the packet: the node, and assumptions about the flow."""

from __future__ import annotations

from analyzer.model.addresses import Address, Network
from analyzer.model.bits import ANY, Bits
from analyzer.model.devices import Side
from analyzer.model.intervals import LOOPBACK, joined, span
from analyzer.model.packet import NO_DEVICE, Packet
from analyzer.model.region import Region
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace, value
from analyzer.semantics.assumed import (
    CLUSTER_IP,
    OUTSIDE_INTERFACE,
    POD_INTERFACE,
    SEGMENT_SIZE,
    SOURCE_PORT,
    Assumed,
)
from analyzer.semantics.masquerade import (
    MasqueradeAddresses,
    is_from_masquerade,
    is_to_masquerade,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Final

    from analyzer.model.devices import Devices
    from analyzer.semantics.devices import NodeDevices
    from analyzer.semantics.ipsets import NodeIpsets

#: States of the packets that nat chains certainly see: the first one of a flow.
FIRST: Final = frozenset({"NEW"})
#: Fields of a packet that one traversal leaves open for many packets, if no rule matches on them:
#: the port that the flow is sent to, its protocol, whether it is masqueraded, and the side that it
#: comes in from, which tells the device and whether that is a bridge's port.
PORT: Final = "destination_port"
PROTOCOL: Final = "protocol"
MASQUERADED: Final = "masqueraded"
SIDE: Final = "comes_from"
ASKED: Final = (PORT, PROTOCOL, MASQUERADED, SIDE)
#: Source ports of sockets that do not choose one; other systems' are among these too. Source:
#: Linux, Documentation/networking/ip-sysctl.rst, ``ip_local_port_range``: 32768 to 60999; RFC 6335.
EPHEMERAL: Final = Bits(0x8000, 0x7FFF)
#: The MSS of hosts: at least that of a host that is told none. Source: RFC 9293, 3.7.1.
LEAST_MSS: Final = 536
MOST_MSS: Final = 0xFFFF


class _SegmentSize(Bits):
    """An MSS of which only the bounds are known."""

    def is_within(self, first: int, last: int) -> Ternary:
        """Return whether it is one of `first` to `last`."""
        if last < LEAST_MSS or first > MOST_MSS:
            return Ternary.FALSE
        is_all = first <= LEAST_MSS and last >= MOST_MSS
        return Ternary.TRUE if is_all else Ternary.UNKNOWN

    def equals(self, wanted: int, mask: int = MOST_MSS) -> Ternary:
        """Return whether the bits of `mask` equal `wanted`."""
        whole = mask & MOST_MSS == MOST_MSS
        return self.is_within(wanted, wanted) if whole else super().equals(wanted, mask)


#: The MSS of a packet that begins a connection; and that it has one.
SEGMENT_SIZES: Final = _SegmentSize(0, MOST_MSS)
HAS_SEGMENT_SIZE: Final = Bits(1)
_OF_SEGMENTS: Final = (SEGMENT_SIZES, HAS_SEGMENT_SIZE)


@value(kw_only=True)
class Situation:
    """The node and the flow.

    Attributes:
        local_addresses: all addresses of the node; None if they are not known. 127.0.0.0/8
            and ::1 are always local.
        state: conntrack's state of the packet; NEW for a flow's first one.
        is_first: whether the packet is a flow's first one, which conntrack will call NEW, though
            it has not seen it yet.
        has_entry: whether conntrack has seen the packet yet.
        flow: the packet as it was when conntrack saw it; None if not known.
        lists: names of the lists, of those that `affinity_lists` begin, that contain the client,
            either ``recent`` lists or nft sets; None if not known.
        affinity_lists: beginnings of the names of lists for session affinity.
        assumed: what is assumed and not in the dump; None if nothing is.
        devices: the devices by which flows pass; None if nothing is known of them.
        ipsets: the contents of the node's ipsets; None if they are not known.
        cluster_ips: returns ClusterIPs, which are no addresses of a node.
        masquerades: the addresses that MASQUERADE gives flows; None: not known.
        noted: called when a rule matches on whether a packet comes from the node itself.
        noted_field: called with the name of a field, one of `ASKED`, when a rule matches on it.
    """

    local_addresses: frozenset[Address] | None = None
    state: str = "NEW"
    is_first: bool = False
    has_entry: bool = True
    flow: Packet | None = None
    lists: frozenset[str] | None = frozenset()
    affinity_lists: tuple[str, ...] = ()
    assumed: Assumed | None = None
    devices: NodeDevices | None = None
    ipsets: NodeIpsets | None = None
    cluster_ips: Callable[[], Collection[Address]] = frozenset
    masquerades: MasqueradeAddresses | None = None
    noted: Callable[[], None] | None = None
    noted_field: Callable[[str], None] | None = None

    @property
    def opens_flow(self) -> bool:
        """Whether the packet is a flow's first one, whether conntrack has seen it or not."""
        return self.is_first or self.state in FIRST

    def is_local(self, packet: Packet) -> Ternary:
        """Return whether `packet` goes to an address of the node, loopback included."""
        if packet.to_node is not None:
            return Ternary.of(packet.to_node)
        found = self.is_own(packet.destination, packet.destinations)
        if found is not Ternary.UNKNOWN or packet.destination is None:
            return found
        # A packet that a rule has sent elsewhere since no longer goes to a ClusterIP.
        if packet.destination != packet.cluster_ip:
            self.want(CLUSTER_IP)
            return found
        return found if self.assume(CLUSTER_IP) is None else Ternary.FALSE

    def _is_to_cluster_ip(self, packet: Packet, network: Network) -> Ternary:
        """Return whether a packet of which the address is not known goes to a network.

        An answer to masqueraded flows goes to the node, before its destination is put back.
        """
        is_known = packet.destination is not None or packet.destinations is not None
        if is_known or not (packet.is_answer and packet.to_node) or network.num_addresses > 1:
            return Ternary.UNKNOWN
        address = network.network_address
        if address in (self.local_addresses or ()) or address not in self.cluster_ips():
            return Ternary.UNKNOWN
        is_assumed = self.local_addresses is None and self.assume(CLUSTER_IP) is None
        return Ternary.UNKNOWN if is_assumed else Ternary.FALSE

    def comes_from(self, packet: Packet, network: Network) -> Ternary:
        """Return whether a packet of which the source is not known comes from a network."""
        if self.masquerades is None or not is_from_masquerade(packet):
            return Ternary.UNKNOWN
        return self.masquerades.is_within((span(network),))

    def goes_to(self, packet: Packet, network: Network) -> Ternary:
        """Return whether a packet of which the destination is not known goes to a network."""
        found = Ternary.UNKNOWN
        if self.masquerades is not None and is_to_masquerade(packet):
            found = self.masquerades.is_within((span(network),))
        return self._is_to_cluster_ip(packet, network) if found is Ternary.UNKNOWN else found

    def assume(self, name: str) -> str | None:
        """Return what is assumed, and record that an answer depends on it; None if nothing is."""
        return None if self.assumed is None else self.assumed.take(name)

    def want(self, name: str) -> None:
        """Record that a match would depend on an assumption for another packet."""
        if self.assumed is not None:
            self.assumed.wanted.add(name)

    def ask(self, field: str) -> None:
        """Record that a rule matches on one of the fields `ASKED`."""
        if self.noted_field is not None:
            self.noted_field(field)

    def ask_port(self, packet: Packet) -> None:
        """Record that a rule matches on the destination port."""
        if not packet.is_answer:  # of an answer it is the client's, which nothing else depends on
            self.ask_any_port()

    def ask_any_port(self) -> None:
        """Record that a rule matches on ports, of which one is that which the flow is sent to."""
        self.ask(PORT)

    def source_port(self, packet: Packet) -> Bits:
        """Return the source port of `packet`; if it is assumed, `EPHEMERAL` itself."""
        if packet.is_answer:  # it is the endpoint's, which the flow was sent to
            self.ask_any_port()
            return ANY if packet.source_port is None else Bits(packet.source_port)
        if packet.source_port is not None:
            return Bits(packet.source_port)
        is_own = packet.masqueraded is False and packet.is_port_own is True
        is_first = self.opens_flow and is_own
        is_assumed = self.assumed is not None and SOURCE_PORT in self.assumed.values
        return EPHEMERAL if is_first and is_assumed else ANY

    def destination_port(self, packet: Packet) -> Bits:
        """Return the destination port of `packet`; if it is assumed, `EPHEMERAL` itself."""
        if packet.destination_port is not None:
            return Bits(packet.destination_port)
        # Conntrack has put back the port that the flow was sent from.
        is_clients = packet.is_answer and packet.is_port_own is True
        is_assumed = self.assumed is not None and SOURCE_PORT in self.assumed.values
        return EPHEMERAL if is_clients and is_assumed else ANY

    def told_by_port(self, port: Bits, found: Ternary) -> Ternary:
        """Return the result of a match on a port; if known, record that an answer depends on it."""
        if port is EPHEMERAL and found is not Ternary.UNKNOWN:
            self.assume(SOURCE_PORT)
        return found

    def begins_connection(self, packet: Packet) -> bool:
        """Return whether a packet is a SYN, or the answer to one, if it is of TCP."""
        return packet.is_answer or self.state in FIRST

    def told_by_size(self, of: Bits, found: Ternary) -> None:
        """Record that an answer depends on an MSS that is assumed, if it does."""
        if any(of is each for each in _OF_SEGMENTS) and found is not Ternary.UNKNOWN:
            self.assume(SEGMENT_SIZE)

    def came_by(self, packet: Packet) -> str | Devices | None:
        """Return the device that `packet` came in by, or `NO_DEVICE`; None if not known."""
        if packet.in_interface is not None or packet.came_by is not None:
            return packet.came_by if packet.in_interface is None else packet.in_interface
        self.ask(SIDE)
        if packet.comes_from is None:
            self.want(POD_INTERFACE)
            if self.devices is not None and self.devices.names_bridges:
                self.want(OUTSIDE_INTERFACE)
        return self._devices(packet.comes_from, leaving=False)

    def leaves_by(self, packet: Packet) -> str | Devices | None:
        """Return the device that `packet` leaves by, or `NO_DEVICE`; None if not known.

        Raises:
            Parted: it leaves to some destinations by other devices than to others.
        """
        if packet.is_answer:  # it leaves by the device that the flow came in by
            self.ask(SIDE)
        if packet.out_interface is not None or packet.leaves_by is not None:
            return packet.leaves_by if packet.out_interface is None else packet.out_interface
        if self.devices is None:
            return None
        side = None
        if packet.is_routed:
            side = self.devices.side(packet.destination, packet.destinations)
            # Which of several devices of the node's pods it is does not count.
            if side is not Side.POD:
                routed = self.devices.routed(packet.destination, packet.destinations)
                if routed is not None:
                    return routed
        if side is None and self.devices.knows_some(packet.destinations):
            self.want(POD_INTERFACE)  # which may decide for some of its destinations
        return self._devices(side, leaving=True)

    def told_by_devices(
        self, device: Devices, found: Ternary, evaluate: Callable[[Devices], Ternary] | None = None
    ) -> Ternary:
        """Return a match's result on a device; if known, record that an answer depends on it.

        `evaluate` returns the result for other devices; without it, it depends on all of `device`.
        """
        if found is Ternary.UNKNOWN:
            return found
        self.assume(POD_INTERFACE)
        if device.beside and (
            evaluate is None or evaluate(replace(device, beside=())) is Ternary.UNKNOWN
        ):
            self.assume(OUTSIDE_INTERFACE)
        return found

    def _devices(self, side: Side | None, *, leaving: bool) -> Devices | None:
        if side is None or self.devices is None or self.assumed is None:
            return None
        patterns = self.assumed.values.get(POD_INTERFACE)
        if patterns is None:
            return None
        found = self.devices.of(side, patterns, leaving=leaving)
        known = not found.beside or OUTSIDE_INTERFACE in self.assumed.values
        return found if known else replace(found, beside=())

    def is_from_node(self, packet: Packet) -> Ternary:
        """Return whether `packet` comes from an address of the node, loopback included."""
        if self.noted is not None:
            self.noted()
        if packet.from_node is not None:
            return Ternary.of(packet.from_node)
        return self.is_own(packet.source, packet.sources)

    def is_forwarded(self, packet: Packet) -> bool:
        """Return whether `packet` is known not to have been made by the node."""
        if self.flow is not None:
            return self.flow.in_interface != NO_DEVICE
        return packet.from_node is False

    def is_own(self, address: Address | None, among: Region | None = None) -> Ternary:
        """Return whether `address`, or one `among` many, is one of the node's, loopback included.

        Raises:
            Parted: some of them are, and some are not.
        """
        if address is None:
            return Ternary.UNKNOWN if among is None else self._are_own(among)
        if address.is_loopback:
            return Ternary.TRUE
        if self.local_addresses is None:
            return Ternary.UNKNOWN
        return Ternary.of(address in self.local_addresses)

    def _are_own(self, among: Region) -> Ternary:
        loopback = LOOPBACK[among.version]
        if self.local_addresses is None:
            return among.is_within(loopback) | Ternary.UNKNOWN  # others are not known
        own = [(int(a), int(a)) for a in self.local_addresses if a.version == among.version]
        return among.is_within(joined([*loopback, *own]))
