"""What happens to flows after DNAT, by source and destination.

Theory of operation
===================

Rules behind nat, in FORWARD, INPUT and POSTROUTING, ask little of a flow besides its mark. So the
packet that is walked through them has all addresses for its source and for its destination
(`region`), and what the rules ask parts these: one walk for each mark tells it of almost all flows
of a dump. Destinations are told apart when one of them is asked about.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from typing import Final, TypeAlias

from analyzer.model.addresses import IPV4, VERSIONS
from analyzer.model.packet import Packet
from analyzer.model.region import (
    AnyOf,
    Apart,
    Intervals,
    Itself,
    Parted,
    Region,
    everything,
    is_one,
    without,
)
from analyzer.model.value import replace
from analyzer.semantics.hooks import Hooks, PortsAsked
from analyzer.semantics.onward import ALL_UNKNOWN, Onward, OnwardBySource, one_of
from analyzer.semantics.parts import holds
from analyzer.semantics.tree import Tree

#: What tells of packets to an address and a port.
Towards: TypeAlias = Callable[[int, int | None], OnwardBySource]

#: Questions of rules by which one destination is told from others; it then is walked for alone.
_MOST_ASKED: Final = 3
#: Questions that part one and the same rest, and for how many that were walked for alone it is one
#: more. Where rules name addresses one by one, as sets of hairpins do, each question takes one of
#: them off the rest, at the cost of a look at all.
_MOST_PARTED: Final = 16
_ALONE: Final = 4


#: Times that rules may ask for the port of a packet to any port.
_MOST_PORTS: Final = 64


class _Destinations:
    """What becomes of a packet by its destination, told when it is asked for.

    `wide` goes to any of its destinations; `walk` tells what becomes of it by its source.
    """

    def __init__(self, wide: Packet, walk: Callable[[Packet], OnwardBySource]) -> None:
        self._walk = walk
        # Parts in order of their first address: where that is, and what is told or left to walk.
        self._firsts: list[int] = []
        # And how many questions have told it from the rest.
        self._held: list[tuple[Intervals, OnwardBySource | Packet, int]] = []
        self._alone: dict[int, OnwardBySource] = {}
        assert wide.destinations is not None
        self.version = wide.destinations.version
        self._keep(wide, wide, 0)

    def _keep(self, packet: Packet, told: OnwardBySource | Packet, depth: int) -> None:
        assert packet.destinations is not None
        for interval in packet.destinations.intervals:
            place = bisect_right(self._firsts, interval[0])
            if place and self._firsts[place - 1] == interval[0]:
                self._held[place - 1] = (interval,), told, depth
            else:
                self._firsts.insert(place, interval[0])
                self._held.insert(place, ((interval,), told, depth))

    def of(self, address: int) -> OnwardBySource:
        """Return what becomes of packets to an address."""
        found = self._alone.get(address)
        if found is not None:
            return found
        _, held, depth = self._held[bisect_right(self._firsts, address) - 1]
        most = _MOST_PARTED + len(self._alone) // _ALONE
        asked = 0
        while isinstance(held, Packet):
            asked += 1
            if asked > _MOST_ASKED or depth > most:
                found = self._alone[address] = self._walk(self._to(held, address))
                return found
            self._part(held, depth)
            _, held, depth = self._held[bisect_right(self._firsts, address) - 1]
        return held

    def _to(self, packet: Packet, address: int) -> Packet:
        """Return a packet to one of its destinations; with what comes back it comes from there."""
        known = IPv4Address(address) if self.version == IPV4 else IPv6Address(address)
        if packet.sources is packet.destinations:
            return replace(packet, source=known, sources=None, destination=known, destinations=None)
        return replace(packet, destination=known, destinations=None)

    def _part(self, packet: Packet, depth: int) -> None:
        """Walk a packet, or tell its destinations apart as a rule asks."""
        try:
            told = self._walk(packet)
        except Parted as by:
            for part in packet.parted(by):
                self._keep(part, part, depth + 1)
        else:
            self._keep(packet, told, depth)

    def all(self, most: int) -> list[tuple[Intervals, OnwardBySource]] | None:
        """Return what becomes of packets to each part; None: there are more than `most`."""
        while True:
            left = {id(held): (held, n) for _, held, n in self._held if isinstance(held, Packet)}
            if not left:
                known = [(where, held) for where, held, _ in self._held]
                return [(where, held) for where, held in known if not isinstance(held, Packet)]
            if len(self._held) > most:
                return None
            for packet, depth in left.values():
                self._part(packet, depth)

    def elsewhere(self, most: int) -> list[tuple[Intervals, OnwardBySource]] | None:
        """Return the same, of packets that do not go to where they come from at least."""
        return self.all(most)


class _Paired:
    """The same where rules ask for pairs of a source and a destination, as for what comes back.

    `apart` tells it of packets that go elsewhere than to where they come from, `itself` of those
    that do not: what it tells of all sources is that of a destination's own address.
    """

    def __init__(
        self,
        apart: _Destinations,
        itself: _Destinations,
        of_all_ports: dict[int, OnwardBySource],
    ) -> None:
        self._all = (everything(apart.version),)
        self._apart = apart
        self._itself = itself
        self._of_all_ports = of_all_ports
        self._known: dict[int, OnwardBySource] = {}
        # With what they are like, so that no other gets its identity.
        self._alike: dict[int, tuple[OnwardBySource, OnwardBySource]] = {}

    def of(self, address: int) -> OnwardBySource:
        """Return what becomes of packets to an address."""
        found = self._known.get(address)
        if found is None:
            found = self._known[address] = self._both(address)
        return found

    def _both(self, address: int) -> OnwardBySource:
        others, back = self._apart.of(address), self._itself.of(address)
        own, asked = back
        itself = one_of(held for _, held in own)
        parts, asked_apart = others
        of_all_ports = id(others) in self._of_all_ports and id(back) in self._of_all_ports
        if all(held == itself for where, held in parts if holds(where, address)):
            if of_all_ports or id(others) not in self._of_all_ports:
                return others
            # Of what comes back another port may tell more.
            return self._alike.setdefault(id(others), (others, (parts, asked_apart)))[1]
        here = ((address, address),)
        found: list[tuple[Intervals | None, Onward]] = [(here, itself)]
        for where, held in parts:
            left = without(self._all if where is None else where, here)
            if left:
                found.append((left, held))
        both = tuple(found), asked_apart | asked | {here}
        if of_all_ports:
            self._of_all_ports[id(both)] = both
        return both

    def all(self, most: int) -> list[tuple[Intervals, OnwardBySource]] | None:
        """Return what becomes of packets to each part; None: there are more than `most`."""
        apart, itself = self._apart.all(most), self._itself.all(most)
        return None if apart is None or itself is None else [*apart, *itself]

    def elsewhere(self, most: int) -> list[tuple[Intervals, OnwardBySource]] | None:
        """Return the same, of packets that do not go to where they come from."""
        return self._apart.all(most)


class Leaving:
    """The flows of one family that leave through `hooks`.

    `asks_pairs`: whether rules may ask for a source together with a destination.
    """

    def __init__(self, hooks: Hooks, family: str, *, asks_pairs: bool = False) -> None:
        self._hooks = hooks
        self._asks_pairs = asks_pairs
        version = VERSIONS[family]
        # Two of them: which one a rule asks for is told by identity.
        self._sources, self._everywhere = (
            Region(version, (everything(version),)) for _ in range(2)
        )
        self._apart = Apart(version, (everything(version),), self._everywhere)
        self._known: dict[Packet, _Destinations | _Paired] = {}
        self._towards: dict[Packet, Towards] = {}
        #: By identity, what was told of packets of which no rule asked for the port.
        self._of_all_ports: dict[int, OnwardBySource] = {}

    def by_source(self, packet: Packet) -> OnwardBySource:
        """Tell what becomes of a packet that was sent to its destination, by its source.

        With ``in_interface=""`` the node has made it. Where it comes from is not looked at.
        """
        to = packet.destination
        return ALL_UNKNOWN if to is None else self.towards(packet)(int(to), packet.destination_port)

    def towards(self, packet: Packet) -> Towards:
        """Return what tells the same of packets to any address and port, quickly."""
        wide = replace(self._wide(packet), destination_port=None)
        found = self._towards.get(wide)
        if found is None:
            found = self._towards[wide] = self._made(wide)
        return found

    def _made(self, wide: Packet) -> Towards:
        of_any_port = self._destinations(wide)
        of_port: dict[int | None, _Destinations | _Paired] = {}
        # By identity, of what is kept with it: to many addresses it is the same.
        certain: dict[int, tuple[OnwardBySource, bool]] = {}

        asks_ports = False

        def told(address: int, port: int | None) -> OnwardBySource:
            nonlocal asks_ports
            if not asks_ports:
                try:
                    found = self._within_ports(of_any_port, address)
                except PortsAsked:  # and so they would of the next one
                    asks_ports = True
                else:
                    if id(found) not in certain:
                        is_certain = all(onward.is_certain for _, onward in found[0])
                        certain[id(found)] = found, is_certain or id(found) in self._of_all_ports
                    if certain[id(found)][1]:
                        return found  # whatever the port
            if port not in of_port:
                of_port[port] = self._destinations(replace(wide, destination_port=port))
            return of_port[port].of(address)

        return told

    def _within_ports(self, told: _Destinations | _Paired, address: int) -> OnwardBySource:
        """Return what becomes of packets to an address and any port, if few rules ask for that.

        Raises:
            PortsAsked: many do: what rules for each of many ports may do says little of one.
        """
        self._hooks.most_ports = _MOST_PORTS
        try:
            return told.of(address)
        finally:
            self._hooks.most_ports = None

    def passing(self, packet: Packet) -> Tree:
        """Return what becomes of a packet that no rule of nat sent on, from whatever source."""
        from_all = replace(packet, source=None, sources=self._sources)
        return self._hooks.behind_nat(from_all, made_here=packet.in_interface == "")

    def asked(self, packet: Packet, most: int, *, loses: bool = False) -> set[Intervals] | None:
        """Return the sources that rules ask for, wherever the packet is sent to.

        Without those that are asked for only towards themselves (hairpin), but where such packets
        may be lost, as `loses` tells. None: rules tell more than `most` destinations apart.
        """
        wide = self._wide(packet)
        if loses:  # what comes back may be, where the same from others is not
            every = _Destinations(wide, self._asking).all(most)
        else:
            every = self._told_by(wide, self._asking).elsewhere(most)
        if every is None:
            return None
        pairs = ((to, where) for to, (_, asked) in every for where in asked)
        return {where for to, where in pairs if loses or not (where == to and is_one(where))}

    def spares_all(self, packet: Packet, most: int) -> bool:
        """Tell whether no such packet is lost, wherever it comes from and is sent to.

        Where rules tell more than `most` destinations apart that is not looked at: False.
        """
        every = self._destinations(replace(self._wide(packet), destination_port=None)).all(most)
        return every is not None and not any(
            onward.lost for _, (parts, _) in every for _, onward in parts
        )

    def spares(self, packet: Packet, addresses: Intervals) -> bool:
        """Tell whether no such packet to one of some addresses is lost, asking for as little.

        It is one walk, whatever rules ask of addresses. False: some may be lost, or none.
        """
        to = AnyOf(self._everywhere.version, addresses)
        wide = replace(self._wide(packet), sources=None, destinations=to, destination_port=None)
        parts, _ = self._walked(wide)
        return not any(onward.lost for _, onward in parts)

    def _walked(self, packet: Packet) -> OnwardBySource:
        found = self._hooks.onward(packet, made_here=packet.in_interface == "")
        if not self._hooks.asked_ports:
            self._of_all_ports[id(found)] = found
        return found

    def _asking(self, packet: Packet) -> OnwardBySource:
        # Of a packet with another mark it may make the difference that it does not make here.
        made_here = packet.in_interface == ""
        return self._hooks.onward(packet, made_here=made_here, asking=True)

    def _wide(self, packet: Packet) -> Packet:
        """Return a packet from anywhere to anywhere that is like another one."""
        return replace(
            packet,
            source=None,
            sources=self._sources,
            destination=None,
            destinations=self._everywhere,
        )

    def _destinations(self, wide: Packet) -> _Destinations | _Paired:
        found = self._known.get(wide)
        if found is None:
            found = self._known[wide] = self._told_by(wide, self._walked)
        return found

    def _told_by(
        self, wide: Packet, walk: Callable[[Packet], OnwardBySource]
    ) -> _Destinations | _Paired:
        """Return what tells what becomes of packets by their destinations, as `walk` tells it."""
        if not self._asks_pairs:
            return _Destinations(wide, walk)
        version = self._everywhere.version
        back = Itself(version, (everything(version),))
        apart = replace(wide, sources=self._apart)
        itself = replace(wide, sources=back, destinations=back)
        known = self._of_all_ports
        return _Paired(_Destinations(apart, walk), _Destinations(itself, walk), known)
