"""What happens after DNAT to flows that were sent to an endpoint, by what is known of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from analyzer.kubeproxy.routes.leaving import Leaving, Towards
from analyzer.kubeproxy.routes.packets import USUAL, First, FlowPackets, UsualAddress
from analyzer.kubeproxy.view import Endpoint, Source
from analyzer.model.addresses import Address
from analyzer.model.devices import Side
from analyzer.model.intervals import common_of
from analyzer.model.packet import Mark
from analyzer.semantics.devices import NodeDevices
from analyzer.semantics.onward import Onward, one_of
from analyzer.semantics.parts import Lookup, Parts, at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Parts of sources from which on they are looked up.
_MANY: Final = 8


class AfterDnat:
    """What happens to one node's flows after DNAT; each result is kept.

    `asks_where_from` returns whether rules may match on the device of a client.
    """

    def __init__(
        self,
        leaving: Leaving,
        packets: FlowPackets,
        devices: NodeDevices,
        asks_where_from: Callable[[], bool],
    ) -> None:
        self._leaving = leaving
        self._packets = packets
        self._devices = devices
        self._asks_where_from = asks_where_from
        self._towards: dict[Hashable, Towards] = {}
        # With the parts, so that no other object gets their identity.
        self._told: dict[tuple[int, Address | None], tuple[Parts[Onward], Onward]] = {}
        self._lookups: dict[int, tuple[Parts[Onward], Lookup[Onward]]] = {}

    def to(
        self,
        source: Source,
        protocol: str,
        endpoint: Endpoint,
        marks: Iterable[Mark],
        address: Address | UsualAddress | None = USUAL,
    ) -> Onward:
        """Return what happens to a flow that was sent to `endpoint` with one of `marks`."""
        way = source, protocol
        return one_of(self.to_each(*way, mark, address)(endpoint) for mark in marks)

    def to_each(
        self,
        source: Source,
        protocol: str,
        mark: Mark | None,
        address: Address | UsualAddress | None = USUAL,
        first: First | None = None,
    ) -> Callable[[Endpoint], Onward]:
        """Return a fast function that returns the same for flows to any endpoint.

        `first` is what is known of them before DNAT.
        """
        known = self._packets.sources[source] if isinstance(address, UsualAddress) else address
        # A hairpin flow comes from the side on which its endpoint is known to be.
        side = self.side_of(known) if source is Source.HAIRPIN else None
        towards = self.towards(source, protocol, mark or Mark(), side, first)
        # With the parts, so that no other object gets their identity.
        told: dict[int, tuple[Parts[Onward], Onward]] = {}

        def onward(endpoint: Endpoint) -> Onward:
            parts, _ = towards(int(endpoint.address), endpoint.port)
            found = told.get(id(parts))
            if found is None:  # it is one object for many endpoints
                found = told[id(parts)] = self._told_at(parts, known)
            return found[1]

        return onward

    def to_itself(
        self, protocol: str, mark: Mark | None, first: First | None = None
    ) -> Callable[[Endpoint], Onward]:
        """Return a fast function that returns the same for hairpin flows of any endpoint."""
        by_side: dict[Side | None, Towards] = {}

        def onward(endpoint: Endpoint) -> Onward:
            side = self.side_of(endpoint.address)
            towards = by_side.get(side)
            if towards is None:
                way = Source.HAIRPIN, protocol, mark or Mark()
                towards = by_side[side] = self.towards(*way, side, first)
            parts, _ = towards(int(endpoint.address), endpoint.port)
            is_for_all = len(parts) == 1 and parts[0][0] is None
            return self._told_at(parts, None if is_for_all else endpoint.address)[1]

        return onward

    def _told_at(
        self, parts: Parts[Onward], address: Address | None
    ) -> tuple[Parts[Onward], Onward]:
        """Return what happens to flows from an address; it is one object for many endpoints."""
        key = id(parts), address
        found = self._told.get(key)
        if found is None:
            found = self._told[key] = parts, one_of(self._at(parts, address))
        return found

    def _at(self, parts: Parts[Onward], address: Address | None) -> Sequence[Onward]:
        """Return what happens to flows from an address; many parts are not tried one by one."""
        if address is None or len(parts) < _MANY:
            return at(parts, address)
        if id(parts) not in self._lookups:
            self._lookups[id(parts)] = parts, Lookup(parts)
        return self._lookups[id(parts)][1].at(int(address))

    def to_all(
        self,
        source: Source,
        protocol: str,
        mark: Mark | None,
        address: Address | None,
        first: First | None = None,
    ) -> Onward | None:
        """Return what happens to flows with `mark` to any endpoint of plain flows.

        A hairpin flow comes from its endpoint. None: it is not the same for all.
        """
        is_hairpin = source is Source.HAIRPIN
        if is_hairpin and self.has_sides:
            return None
        sent = self._packets.translated(source, protocol, mark or Mark(), first=first)
        parts = self._leaving.to_all(sent)
        if parts is None:
            return None
        if not is_hairpin:
            return one_of(self._at(parts, address))
        within = self._leaving.within
        found = [held for where, held in parts if where is None or common_of(where, within)]
        return found[0] if len(found) == 1 else None

    @property
    def has_sides(self) -> bool:
        """Whether endpoints are on different sides of the node, as far as rules match on that."""
        return self._devices.knows_any and self._asks_where_from()

    def side_of(self, address: Address | None) -> Side | None:
        """Return the side that an endpoint's own flows come from; None: not known, or no effect."""
        return (
            self._devices.side(address) if address is not None and self._asks_where_from() else None
        )

    def towards(
        self,
        source: Source,
        protocol: str,
        mark: Mark,
        side: Side | None = None,
        first: First | None = None,
    ) -> Towards:
        """Return a function that returns what happens to flows to each endpoint, by their sources.

        `side` is that of the source, if its kind does not determine it; `first` is what is known
        of the flows before DNAT.
        """
        key = source, protocol, mark, side, first
        found = self._towards.get(key)
        if found is None:
            found = self._towards[key] = self._leaving.towards(self._packets.translated(*key))
        return found
