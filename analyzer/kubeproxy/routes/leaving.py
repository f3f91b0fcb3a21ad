"""What happens to flows after DNAT, by source and destination.

Theory of operation
===================

Rules after nat, in FORWARD, INPUT and POSTROUTING, match on little of a flow besides its mark. So
the packet that traverses them has all addresses for its source and for its destination
(`region`), and is split where rules match only some: one traversal for each mark gives the result
for almost all flows of a dump. Destinations are distinguished when one of them is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Final, TypeAlias

from analyzer.kubeproxy.routes.destinations import AskedFields, Destinations, Paired, asked_fields
from analyzer.model.addresses import VERSIONS
from analyzer.model.intervals import Intervals, everything, is_one
from analyzer.model.packet import NO_DEVICE, Packet
from analyzer.model.region import AnyOf, Apart, Itself, Parted, Region
from analyzer.model.ternary import Ternary
from analyzer.model.value import fields_of, replace
from analyzer.semantics.conditions import questions
from analyzer.semantics.hooks import Hooks, PortsAsked
from analyzer.semantics.onward import ALL_UNKNOWN, Onward, OnwardBySource, spares_all
from analyzer.semantics.parts import MatchedSources, Parts
from analyzer.semantics.situation import PORT, PROTOCOL
from analyzer.semantics.tree import Tree

#: Returns what happens to packets to an address and a port.
Towards: TypeAlias = Callable[[int, int | None], OnwardBySource]
#: Most parts of the destinations that are compared to see whether all have the same result.
_MOST_ALIKE: Final = 16
#: Most destinations whose results are kept.
_MOST_KNOWN: Final = 100_000
#: Most rules that may match on the port of a packet to any port.
_MOST_PORTS: Final = 64
#: Fields of a packet that `Leaving.towards` leaves open.
ENDS: Final = frozenset({"source", "sources", "destination", "destinations", "destination_port"})
_BUT_ENDS: Final = attrgetter(*(name for name in fields_of(Packet) if name not in ENDS))


def from_any_side(packet: Packet) -> Packet:
    """Return a packet that represents all that come in, from whatever side.

    A packet that the node makes does not change.
    """
    if packet.in_interface == NO_DEVICE:
        return packet
    return replace(of_any_side(packet), from_node=None, to_node=None)


def of_any_side(packet: Packet) -> Packet:
    """Return a packet of which `SIDE` is not known."""
    return replace(packet, comes_from=None, bridge_port=None)


def are_masqueraded(every: Iterable[Onward]) -> bool:
    """Return whether none of some packets is lost, and each gets another source address."""
    return all(not each.lost and each.masquerade is Ternary.TRUE for each in every)


class Leaving:
    """The flows of one family that leave through `hooks`.

    `asks_pairs`: whether rules may match on a source together with a destination. `within` are
    the destinations that `asked` and `spares_all` are about, to which most packets go; None: all.
    """

    def __init__(
        self,
        hooks: Hooks,
        family: str,
        *,
        asks_pairs: bool = False,
        within: Callable[[], Intervals | None] = lambda: None,
    ) -> None:
        self._hooks = hooks
        self._given_within = within
        self._asks_pairs = asks_pairs
        version = VERSIONS[family]
        # Two objects: which one a rule matches on follows from their identity.
        self._sources, self._everywhere = (
            Region(version, (everything(version),)) for _ in range(2)
        )
        self._apart = Apart(version, (everything(version),), self._everywhere)
        self._cuts: list[Intervals] = []
        self._at_once: dict[Packet, MatchedSources | None] = {}
        #: Whether all such packets reach their destinations, as far as a traversal has shown.
        self._spared: dict[Packet, bool] = {}
        self._known: dict[Packet, Destinations | Paired] = {}
        self._towards: dict[Packet, Towards] = {}
        self._towards_like: dict[tuple[object, ...], Towards] = {}
        self._to_all: dict[Packet, Parts[Onward] | None] = {}
        self._certainly: dict[Packet, Callable[[int], OnwardBySource | None]] = {}
        self._asked_fields: AskedFields = {}

    @cached_property
    def within(self) -> Intervals:
        """The destinations that most packets go to."""
        return self._given_within() or self._everywhere.intervals

    def towards(self, packet: Packet) -> Towards:
        """Return a fast function that returns what happens to packets to an address and a port.

        That is said by source, and only the other fields of `packet` matter. With
        ``in_interface=NO_DEVICE`` the node has made it.
        """
        # Most packets differ in their destination alone, and to make a packet takes a while.
        like = _BUT_ENDS(packet)
        found = self._towards_like.get(like)
        if found is None:
            wide = replace(self._wide(packet), destination_port=None)
            found = self._towards.get(wide)
            if found is None:
                found = self._towards[wide] = self._made(wide)
            self._towards_like[like] = found
        return found

    def _made(self, wide: Packet) -> Towards:
        """Return a function that uses the port and the protocol only if these make a difference."""
        of_any_protocol = self._certain(replace(wide, protocol=None))
        of_any_port = self._certain(wide)
        of_port: dict[int | None, Destinations | Paired] = {}
        #: Of many sources each is asked about the same endpoints.
        known: dict[tuple[int, int | None], OnwardBySource] = {}

        def told(address: int, port: int | None) -> OnwardBySource:
            found = known.get((address, port))
            if found is None:
                found = asked(address, port)
                if len(known) < _MOST_KNOWN:
                    known[address, port] = found
            return found

        def asked(address: int, port: int | None) -> OnwardBySource:
            found = of_any_protocol(address) or of_any_port(address)
            if found is not None:
                return found
            if port not in of_port:
                of_port[port] = self._destinations(replace(wide, destination_port=port))
            return of_port[port].of(address)

        return told

    def _certain(self, wide: Packet) -> Callable[[int], OnwardBySource | None]:
        """Return a function with the results that do not depend on more than the address.

        None: the port, or the protocol if that is not known, may make them more precise.
        """
        if wide in self._certainly:
            return self._certainly[wide]
        # Made at the first question: what rules matched on of other packets is known by then.
        every: Destinations | Paired | None = None
        # By identity, with the object: it is the same for many addresses.
        certain: dict[int, tuple[OnwardBySource, bool]] = {}
        asks_ports = False

        def told(address: int) -> OnwardBySource | None:
            nonlocal asks_ports, every
            if asks_ports:
                return None
            if every is None:
                every = self._destinations(wide)
            try:
                found = self._within_ports(every, address)
            except PortsAsked:  # and the same holds for the next address
                asks_ports = True
                return None
            if id(found) not in certain:
                certain[id(found)] = found, self._is_enough(wide, found)
            return found if certain[id(found)][1] else None

        self._certainly[wide] = told
        return told

    def _within_ports(self, told: Destinations | Paired, address: int) -> OnwardBySource:
        """Return what happens to packets to an address and any port, if few rules match on ports.

        Raises:
            PortsAsked: many do: what any of the rules for many ports may do says little of one.
        """
        self._hooks.most_ports = _MOST_PORTS
        try:
            return told.of(address)
        finally:
            self._hooks.most_ports = None

    def to_all(self, packet: Packet) -> Parts[Onward] | None:
        """Return what happens to packets of one protocol to all destinations within, by source.

        None: it is not the same for all, or their ports would make it more precise.
        """
        wide = replace(self._wide(packet), destination_port=None)
        if wide not in self._to_all:
            of_any_protocol = replace(wide, protocol=None)
            if of_any_protocol not in self._to_all:
                self._to_all[of_any_protocol] = self._of_all(of_any_protocol)
            self._to_all[wide] = self._to_all[of_any_protocol] or self._of_all(wide)
        return self._to_all[wide]

    def _of_all(self, wide: Packet) -> Parts[Onward] | None:
        if self._asks_pairs:
            return None
        self._hooks.most_ports = _MOST_PORTS
        try:
            every = self._destinations(wide).all(_MOST_ALIKE)
        except PortsAsked:
            return None
        finally:
            self._hooks.most_ports = None
        told = [found for _, found in every or ()]
        alike = bool(told) and all(parts == told[0][0] for parts, _ in told)
        return told[0][0] if alike and all(self._is_enough(wide, each) for each in told) else None

    def _is_enough(self, wide: Packet, found: OnwardBySource) -> bool:
        """Return whether knowing the port or protocol of the packet would not change the result."""
        if all(onward.is_certain for _, onward in found[0]):
            return True
        asked = asked_fields(self._asked_fields, found)
        knows_port = wide.destination_port is not None or PORT not in asked
        return knows_port and (wide.protocol is not None or PROTOCOL not in asked)

    def passing(self, packet: Packet) -> Tree:
        """Return what happens to a packet that no rule of nat sent on, from any source."""
        from_all = replace(packet, source=None, sources=self._sources)
        return self._hooks.behind_nat(from_all, made_here=packet.in_interface == NO_DEVICE)

    def asked(self, packet: Packet, most: int, *, loses: bool = False) -> set[Intervals] | None:
        """Return the sources that rules match on, of packets to destinations within.

        Sources that are matched only for packets to themselves (hairpin) are left out, unless such
        packets may be lost (`loses`). None: rules distinguish more than `most` destinations.
        """
        wide = self._wide(packet)
        if not loses and not self._asks_pairs:
            at_once = self._asked_at_once(from_any_side(wide), most)
            if at_once is not None:
                return set(at_once)
        if loses:  # hairpin packets may be lost where the same from others are not
            every = Destinations(wide, self._asking, self.within, self._cuts).all(most)
        else:
            every = self._told_by(wide, self._asking).elsewhere(most)
        if every is None:
            return None
        pairs = ((to, where) for to, (_, asked) in every for where in asked)
        return {where for to, where in pairs if loses or not (where == to and is_one(where))}

    def _asked_at_once(self, wide: Packet, most: int) -> MatchedSources | None:
        """Return the sources that rules match on, whatever they match on of destinations.

        These may be more than for any one destination. It is one traversal; None: it does not
        decide, for example because rules match one address both as source and as destination
        (hairpins), or match on more than `most` destinations.
        """
        if wide not in self._at_once:
            exceeded = self._hooks.exceeded
            to = AnyOf(self._everywhere.version, self.within)
            sent = replace(wide, destinations=to)
            tree = self._hooks.behind_nat(sent, made_here=sent.in_interface == NO_DEVICE)
            asked = frozenset(questions(tree))
            is_within = self._hooks.exceeded == exceeded
            self._spared[wide] = is_within and spares_all(tree, sent)
            is_told = (
                is_within
                and len(to.asked) <= most
                and not any(is_one(each) for each in to.asked & asked)
            )
            self._at_once[wide] = asked if is_told else None
            self._hooks.forget(exceeded)
        return self._at_once[wide]

    def spares_at_once(self, packet: Packet) -> bool | None:
        """Return whether all such packets to destinations within certainly reach them.

        From whatever side and source. None: `asked` has not evaluated it.
        """
        return self._spared.get(from_any_side(self._wide(packet)))

    def distrust(self, packet: Packet) -> None:
        """Forget what `spares_at_once` returns for such packets: it rests on an assumption."""
        self._spared.pop(from_any_side(self._wide(packet)), None)

    def spares_all(self, packet: Packet, most: int) -> bool:
        """Return whether no such packet to destinations within is lost, from any source.

        False, without a further look, if rules distinguish more than `most` destinations.
        """
        every = self._destinations(replace(self._wide(packet), destination_port=None)).all(most)
        return every is not None and not any(
            onward.lost for _, (parts, _) in every for _, onward in parts
        )

    def spares(self, packet: Packet, addresses: Intervals) -> bool:
        """Return whether no such packet to one of some addresses is lost, in one traversal.

        Matches on addresses do not split it. False: some may be lost, or none.
        """
        return not any(onward.lost for onward in self._to_any(packet, addresses))

    def masquerades(self, packet: Packet, addresses: Intervals) -> bool:
        """Return the same, and that they all get another source address."""
        return are_masqueraded(self._to_any(packet, addresses))

    def to_others(self, packet: Packet, addresses: Intervals) -> OnwardBySource | None:
        """Return what happens to packets to any of some addresses, from another one, by source.

        In one traversal; None: that is not the same for all, as far as it tells; if the packet has
        no port, as far as the port makes no difference.
        """
        to = AnyOf(self._everywhere.version, addresses)
        sources = Apart(to.version, (everything(to.version),), to)
        wide = replace(self._wide(packet), sources=sources, destinations=to)
        found = self._walked(wide)
        if all(onward.is_certain for _, onward in found[0]):
            return found
        return found if not to.asked and self._is_for_each(wide, found) else None

    def to_itself(self, packet: Packet, addresses: Intervals) -> OnwardBySource | None:
        """Return the same of packets from any of some addresses to itself."""
        back = Itself(self._everywhere.version, addresses)
        wide = replace(self._wide(packet), sources=back, destinations=back)
        try:
            found = self._walked(wide)
        except Parted:
            return None
        return found if self._is_for_each(wide, found) else None

    def _is_for_each(self, wide: Packet, found: OnwardBySource) -> bool:
        """Return whether what happens to packets to any of some addresses holds for each of them.

        What is lost of their replies may be open only because these come from any of them.
        """
        loses = (bounds for _, onward in found[0] for _, bounds in onward.lost)
        return all(bounds.is_exact for bounds in loses) and self._is_enough(wide, found)

    def _to_any(self, packet: Packet, addresses: Intervals) -> Sequence[Onward]:
        """Return what may happen to a packet to one of some addresses."""
        to = AnyOf(self._everywhere.version, addresses)
        wide = replace(self._wide(packet), sources=None, destinations=to, destination_port=None)
        return [onward for _, onward in self._walked(wide)[0]]

    def _walked(self, packet: Packet) -> OnwardBySource:
        found = self._hooks.onward(packet, made_here=packet.in_interface == NO_DEVICE)
        self._asked_fields[id(found)] = found, frozenset(self._hooks.asked_fields)
        return found

    def _asking(self, packet: Packet) -> OnwardBySource:
        # For a packet with another mark a match may make a difference that it does not make here:
        # what happens to this one is not evaluated.
        unknown, _ = ALL_UNKNOWN
        return unknown, self._hooks.asked(packet, made_here=packet.in_interface == NO_DEVICE)

    def _wide(self, packet: Packet) -> Packet:
        """Return a packet like another one, from and to any address.

        Bits of its marks that no rule matches on are left out.
        """
        return replace(
            packet,
            source=None,
            sources=self._sources,
            destination=None,
            destinations=self._everywhere,
            mark=self._hooks.asked_of(packet.mark),
            flow_mark=self._hooks.asked_of(packet.flow_mark),
        )

    def _destinations(self, wide: Packet) -> Destinations | Paired:
        found = self._known.get(wide)
        if found is None:
            found = self._known[wide] = self._told_by(wide, self._walked)
        return found

    def _told_by(
        self, wide: Packet, walk: Callable[[Packet], OnwardBySource]
    ) -> Destinations | Paired:
        """Return what happens to packets by their destinations, as `walk` finds it."""
        if not self._asks_pairs:
            return Destinations(wide, walk, self.within, self._cuts)
        version = self._everywhere.version
        back = Itself(version, (everything(version),))
        apart = replace(wide, sources=self._apart)
        itself = replace(wide, sources=back, destinations=back)
        given = walk, self.within, self._cuts
        both = Destinations(apart, *given), Destinations(itself, *given)
        return Paired(*both, self._asked_fields)
