"""What matches depend on besides the packet: the node, and assumptions about the flow."""

from __future__ import annotations

from analyzer.model.addresses import Address
from analyzer.model.bits import ANY, Bits
from analyzer.model.packet import Packet
from analyzer.model.region import LOOPBACK, Region, joined
from analyzer.model.ternary import Ternary
from analyzer.model.value import value
from analyzer.semantics.assumed import CLUSTER_IP, POD_INTERFACE, SOURCE_PORT, Assumed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from analyzer.model.devices import Devices, Side
    from analyzer.semantics.devices import NodeDevices
    from analyzer.semantics.ipsets import NodeIpsets

#: States of the packet that nat's chains see for certain: the first one of a flow of its own.
FIRST: Final = frozenset({"NEW"})
#: What a socket gets that does not ask for a port; other systems' are of these too. Source: Linux,
#: Documentation/networking/ip-sysctl.rst, ``ip_local_port_range``: 32768 to 60999; RFC 6335.
EPHEMERAL: Final = Bits(0x8000, 0x7FFF)


@value(kw_only=True)
class Situation:
    """The node and the flow.

    Attributes:
        local_addresses: all addresses of the node; None when they are not known. 127.0.0.0/8
            and ::1 are always local.
        state: what conntrack calls the packet; a flow's first one is NEW.
        is_first: whether the packet is a flow's first one, which conntrack will call NEW, though
            it has not looked at it yet.
        has_entry: whether conntrack has looked at the packet yet.
        flow: the packet as it was when conntrack looked; None: not said.
        lists: names of the lists, of those that `affinity_lists` begin, that hold the client,
            which are ``recent`` lists or sets of nft; None: not known.
        affinity_lists: how the names of lists begin that session affinity keeps.
        assumed: what the dump does not tell and is assumed; None: nothing is.
        devices: what tells by which devices flows pass; None: nothing does.
        ipsets: what the node's ipsets hold; None: nobody told.
        noted: called when a rule asks whether a packet comes from the node itself.
        noted_port: called when a rule asks which port a packet is sent to.
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
    noted: Callable[[], None] | None = None
    noted_port: Callable[[], None] | None = None

    @property
    def opens_flow(self) -> bool:
        """Whether the packet is a flow's first one, whether conntrack has looked at it or not."""
        return self.is_first or self.state in FIRST

    def is_local(self, packet: Packet) -> Ternary:
        """Tell whether `packet` goes to an address of the node, loopback included."""
        if packet.to_node is not None:
            return Ternary.of(packet.to_node)
        found = self.is_own(packet.destination, packet.destinations)
        if found is not Ternary.UNKNOWN or packet.destination is None:
            return found
        # What a rule has sent elsewhere since goes to a ClusterIP no more.
        if packet.destination != packet.cluster_ip:
            self.want(CLUSTER_IP)
            return found
        return found if self.assume(CLUSTER_IP) is None else Ternary.FALSE

    def assume(self, name: str) -> str | None:
        """Return what is assumed, and note that an answer rests on it; None: nothing."""
        return None if self.assumed is None else self.assumed.take(name)

    def want(self, name: str) -> None:
        """Note that a match would rest on an assumption, were its packet one that it is made of."""
        if self.assumed is not None:
            self.assumed.wanted.add(name)

    def ask_port(self) -> None:
        """Note that a rule asks which port a packet is sent to."""
        if self.noted_port is not None:
            self.noted_port()

    def source_port(self, packet: Packet) -> Bits:
        """Return the port that `packet` comes from; `EPHEMERAL` itself: that is assumed."""
        if packet.source_port is not None:
            return Bits(packet.source_port)
        is_own = packet.masqueraded is False and packet.is_port_own is True
        is_first = self.opens_flow and is_own
        is_assumed = self.assumed is not None and SOURCE_PORT in self.assumed.values
        return EPHEMERAL if is_first and is_assumed else ANY

    def told_by_port(self, port: Bits, found: Ternary) -> Ternary:
        """Return what was found of a port, and note that an answer rests on it if it is known."""
        if port is EPHEMERAL and found is not Ternary.UNKNOWN:
            self.assume(SOURCE_PORT)
        return found

    def came_by(self, packet: Packet) -> str | Devices | None:
        """Return the device that `packet` came in by; the empty string: none; None: not known."""
        if packet.in_interface is not None or packet.came_by is not None:
            return packet.came_by if packet.in_interface is None else packet.in_interface
        if packet.comes_from is None:
            self.want(POD_INTERFACE)
        return self._devices(packet.comes_from, leaving=False)

    def leaves_by(self, packet: Packet) -> str | Devices | None:
        """Return the device that `packet` leaves by; the empty string: none; None: not known.

        Raises:
            Parted: it leaves to some destinations by other devices than to others.
        """
        if packet.out_interface is not None or self.devices is None:
            return packet.out_interface
        if packet.leaves_by is not None and packet.is_routed:
            return packet.leaves_by
        side = None
        if packet.is_routed:
            side = self.devices.side(packet.destination, packet.destinations)
        if side is None and self.devices.knows_some(packet.destinations):
            self.want(POD_INTERFACE)  # which may decide for some of its destinations
        return self._devices(side, leaving=True)

    def told_by_devices(self, found: Ternary) -> Ternary:
        """Return what was found of a device, and note that an answer rests on it if it is known."""
        if found is not Ternary.UNKNOWN:
            self.assume(POD_INTERFACE)
        return found

    def _devices(self, side: Side | None, *, leaving: bool) -> Devices | None:
        if side is None or self.devices is None or self.assumed is None:
            return None
        patterns = self.assumed.values.get(POD_INTERFACE)
        return None if patterns is None else self.devices.of(side, patterns, leaving=leaving)

    def is_from_node(self, packet: Packet) -> Ternary:
        """Tell whether `packet` comes from an address of the node, loopback included."""
        if self.noted is not None:
            self.noted()
        if packet.from_node is not None:
            return Ternary.of(packet.from_node)
        return self.is_own(packet.source, packet.sources)

    def is_own(self, address: Address | None, among: Region | None = None) -> Ternary:
        """Tell whether `address`, or one `among` many, is one of the node's, loopback included.

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
            return among.is_within(loopback) | Ternary.UNKNOWN  # of others nobody knows
        own = [(int(a), int(a)) for a in self.local_addresses if a.version == among.version]
        return among.is_within(joined([*loopback, *own]))
