"""Packets to many destinations, split where a rule matches only some of these.

Theory of operation
===================

A packet has a whole region of destinations and traverses the rules once for all of them, until a
rule matches only some (`Parted`): then it starts again, once for those and once for the others.
So what is found for an address holds for all addresses that no rule distinguishes from it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from typing import Final, TypeAlias

from analyzer.model.addresses import IPV4
from analyzer.model.intervals import Intervals, everything, holds, without
from analyzer.model.packet import Packet
from analyzer.model.region import Parted
from analyzer.model.value import replace
from analyzer.semantics.onward import Onward, OnwardBySource, one_of
from analyzer.semantics.parts import holds as is_of
from analyzer.semantics.situation import ASKED

#: By the identity of a result, the fields of the packet that rules matched on.
AskedFields: TypeAlias = "dict[int, tuple[OnwardBySource, frozenset[str]]]"
#: Splits for one destination, after which the rules are traversed for this destination alone.
_MOST_ASKED: Final = 6
#: Splits of the same remainder, and the number of destinations traversed alone after
#: which one more is allowed. If rules match addresses one by one, for example in hairpin sets, each
#: split takes one of them off the remainder, and each costs a traversal for the whole remainder.
_MOST_PARTED: Final = 16
_ALONE: Final = 4
#: Most matches of earlier packets by which packets are split before the rules are traversed.
_MOST_CUTS: Final = 8
_ALL_FIELDS: Final = frozenset(ASKED)


def asked_fields(asked: AskedFields, found: OnwardBySource) -> frozenset[str]:
    """Return the fields that a result may rest on: all, unless another set is known."""
    _, fields = asked.get(id(found), (found, _ALL_FIELDS))
    return fields


class Destinations:
    """What happens to a packet by its destination, computed on demand.

    `wide` goes to any of its destinations; `walk` returns what happens to it by its source. Most
    packets go to one `within` some of these: matches on other destinations do not split those.
    `cuts` is what rules matched on of other packets, and is extended: rules most often match on the
    same of this one, and to find that out by a traversal means to start it again.
    """

    def __init__(
        self,
        wide: Packet,
        walk: Callable[[Packet], OnwardBySource],
        within: Intervals,
        cuts: list[Intervals],
    ) -> None:
        self._walk = walk
        self._within = within
        self._cuts = cuts
        # Parts in order of their first address: the part, and its result or what is left to
        # traverse.
        self._firsts: list[int] = []
        # And how many splits have separated it from the remainder.
        self._held: list[tuple[Intervals, OnwardBySource | Packet, int]] = []
        self._alone: dict[int, OnwardBySource] = {}
        assert wide.destinations is not None
        self.version = wide.destinations.version
        self._keep(wide, wide, 0)
        parts = [wide]
        for cut in (within, *cuts):
            parts = [part for each in parts for part in _cut(each, cut)]
        for part in parts[1:] and parts:
            self._keep(part, part, 0)

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
        """Return what happens to packets to an address."""
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
        """Return a packet to one of its destinations; a hairpin packet comes from there too."""
        known = IPv4Address(address) if self.version == IPV4 else IPv6Address(address)
        if packet.sources is packet.destinations:
            return replace(packet, source=known, sources=None, destination=known, destinations=None)
        return replace(packet, destination=known, destinations=None)

    def _part(self, packet: Packet, depth: int) -> None:
        """Traverse the rules with a packet, or split its destinations where a rule does."""
        try:
            told = self._walk(packet)
        except Parted as by:
            if len(self._cuts) < _MOST_CUTS and by.asked not in self._cuts:
                self._cuts.append(by.asked)
            for part in packet.parted(by):
                self._keep(part, part, depth + 1)
        else:
            self._keep(packet, told, depth)

    def all(self, most: int) -> list[tuple[Intervals, OnwardBySource]] | None:
        """Return what happens to packets to each part within; None: there are more than `most`."""
        while True:
            held = [each for each in self._held if holds(self._within, each[0][0][0])]
            left = {id(each): (each, depth) for _, each, depth in held if isinstance(each, Packet)}
            if not left:
                return [(where, each) for where, each, _ in held if not isinstance(each, Packet)]
            if len(held) > most:
                return None
            for packet, depth in left.values():
                self._part(packet, depth)

    def elsewhere(self, most: int) -> list[tuple[Intervals, OnwardBySource]] | None:
        """Return at least the parts of `all` for packets that do not return to their source."""
        return self.all(most)


def _cut(packet: Packet, asked: Intervals) -> tuple[Packet, ...]:
    """Return a packet to those of its destinations that are in `asked`, and one to the others."""
    assert packet.destinations is not None
    inside = packet.destinations.common(asked)
    if not inside or inside == packet.destinations.intervals:
        return (packet,)
    return packet.parted(Parted(packet.destinations, asked, inside))


class Paired:
    """The same for rules that match pairs of a source and a destination, for example for hairpins.

    `apart` is about packets to another address than their source, `itself` about those from and to
    one address: what it returns for all sources holds for the destination's own address.
    """

    def __init__(
        self,
        apart: Destinations,
        itself: Destinations,
        asked: AskedFields,
    ) -> None:
        self._all = (everything(apart.version),)
        self._apart = apart
        self._itself = itself
        self._asked_fields = asked
        self._known: dict[int, OnwardBySource] = {}
        #: By the identity of both results, which are kept with it: what holds for every address.
        self._pairs: dict[
            tuple[int, int], tuple[OnwardBySource, OnwardBySource, OnwardBySource]
        ] = {}
        # Kept with the original, so that no other object gets its identity.
        self._alike: dict[tuple[int, frozenset[str]], tuple[OnwardBySource, OnwardBySource]] = {}

    def of(self, address: int) -> OnwardBySource:
        """Return what happens to packets to an address."""
        found = self._known.get(address)
        if found is None:
            found = self._known[address] = self._both(address)
        return found

    def _both(self, address: int) -> OnwardBySource:
        others, back = self._apart.of(address), self._itself.of(address)
        pair = self._pairs.get((id(others), id(back)))
        if pair is not None:
            return pair[2]
        found = self._together(address, others, back)
        if found[0] is others[0] and all(where is None for where, _ in others[0]):
            self._pairs[id(others), id(back)] = others, back, found
        return found

    def _together(
        self, address: int, others: OnwardBySource, back: OnwardBySource
    ) -> OnwardBySource:
        """Return one result of packets to others and of those back to their source."""
        own, asked = back
        itself = one_of(held for _, held in own)
        parts, asked_apart = others
        of_others = asked_fields(self._asked_fields, others)
        of_both = of_others | asked_fields(self._asked_fields, back)
        if all(held == itself for where, held in parts if is_of(where, address)):
            if of_both == of_others:
                return others
            # For hairpin packets another port or protocol may give a more precise result.
            alike = parts, asked_apart
            _, alike = self._alike.setdefault((id(others), of_both), (others, alike))
            self._asked_fields[id(alike)] = alike, of_both
            return alike
        here = ((address, address),)
        found: list[tuple[Intervals | None, Onward]] = [(here, itself)]
        for where, held in parts:
            left = without(self._all if where is None else where, here)
            if left:
                found.append((left, held))
        both = tuple(found), asked_apart | asked | {here}
        self._asked_fields[id(both)] = both, of_both
        return both

    def all(self, most: int) -> list[tuple[Intervals, OnwardBySource]] | None:
        """Return what happens to packets to each part; None: there are more than `most`."""
        apart, itself = self._apart.all(most), self._itself.all(most)
        return None if apart is None or itself is None else [*apart, *itself]

    def elsewhere(self, most: int) -> list[tuple[Intervals, OnwardBySource]] | None:
        """Return the same of packets that do not return to their source."""
        return self._apart.all(most)
