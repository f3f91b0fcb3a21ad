"""Flows to frontends, walked through the nat hooks, so that shares include every rule."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

from analyzer.kubeproxy import names
from analyzer.kubeproxy.matched.devices import asked_devices, dispatched
from analyzer.kubeproxy.matched.sets import asks_pairs, asks_sets, node_ipsets
from analyzer.kubeproxy.routes.explored import Explored
from analyzer.kubeproxy.routes.leaving import Leaving, Towards, from_any_side
from analyzer.kubeproxy.routes.packets import HOOKS, USUAL, FlowPackets, behind_nat, bridge_port
from analyzer.kubeproxy.view import Endpoint, Frontend, Source
from analyzer.model.addresses import VERSIONS, Address, Network
from analyzer.model.devices import Side
from analyzer.model.packet import UNKNOWN_MARK, Mark, Packet
from analyzer.model.region import Intervals, Region, everything, networks_of
from analyzer.model.rules import Ruleset
from analyzer.model.value import replace
from analyzer.semantics.assumed import BRIDGE_PORT, DEFAULTS, POD_INTERFACE, Assumed
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.devices import NodeDevices, PodPlaces
from analyzer.semantics.effort import Effort
from analyzer.semantics.hooks import Hooks
from analyzer.semantics.onward import Onward, OnwardBySource, one_of
from analyzer.semantics.parts import Parts, at
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import Tree

#: What may be assumed of flows from one side, or to one.
_OF_SIDES: Final = frozenset({BRIDGE_PORT, POD_INTERFACE})


class FlowWalks:
    """The general way to the shares of any route.

    `rulesets` are those of the node, `family` is ``ip`` or ``ip6``; `own` are the node's
    addresses, if known, and flows to a NodePort go to `node_port_address`, if that is.
    `assumed` is what is assumed beyond the rules; None: what is by default; `places` tells where
    addresses live, `within` the addresses among which are the endpoints of plain flows; None: all.

    Attributes:
        trees_used: names of assumptions on which the trees rest that `whole` told of so far.
    """

    def __init__(
        self,
        rulesets: Sequence[Rules],
        family: str,
        own: tuple[Address, ...],
        sources: Mapping[Source, Address | None],
        node_port_address: Address | None = None,
        assumed: Mapping[str, str] | None = None,
        places: Callable[[], PodPlaces] = PodPlaces,
        within: Callable[[], Intervals | None] = lambda: None,
    ) -> None:
        self._rulesets = rulesets
        self._family = family
        self._own = frozenset(own)
        self._assumed = Assumed(DEFAULTS if assumed is None else assumed)
        self._devices = NodeDevices(
            lambda: asked_devices(rulesets),
            places,
            lambda leaving: dispatched(rulesets, leaving=leaving),
        )
        self._ipsets = node_ipsets(rulesets)
        self._situation = Situation(
            assumed=self._assumed,
            devices=self._devices,
            ipsets=self._ipsets,
            local_addresses=frozenset(own) if own else None,
            affinity_lists=names.AFFINITY_LISTS,
            noted=self._note_own_sources,
        )
        #: Whether a rule asked, since a walk began, if a packet comes from the node itself.
        self._asks_own_sources = False
        #: What the walks of one chain alone may cost.
        self._effort = Effort(self._asked_bits)
        self._hooks = Hooks(rulesets, family, self._situation, asked_bits=self._asked_bits)
        self.trees_used: set[str] = set()
        self._asks_pairs = asks_pairs(rulesets)
        pairs = self._asks_pairs
        self._leaving = Leaving(self._hooks, family, asks_pairs=pairs, within=within)
        self._spared: dict[tuple[Packet, Intervals], bool] = {}
        self._towards: dict[tuple[Source, str, Mark, Side | None], Towards] = {}
        # With the parts, so that no others get their identity.
        self._told: dict[tuple[int, Address | None], tuple[Parts[Onward], Onward]] = {}
        # A flow to a NodePort goes to some address of the node, known or not.
        node_port_address = node_port_address or (own[0] if own else None)
        self.packets = FlowPackets(sources, bridge_port(self.assumed), node_port_address)

    @property
    def used(self) -> set[str]:
        """Names of the assumptions that decided a match so far."""
        return self._assumed.used

    @property
    def assumed(self) -> Mapping[str, str]:
        """What is assumed beyond the rules."""
        return self._assumed.values

    @cached_property
    def asks_bridges(self) -> bool:
        """Whether a rule may match on ports of bridges."""
        from analyzer.kubeproxy.rows.texts import says

        tables = (t for r in self._rulesets if isinstance(r, Ruleset) for t in r.tables.values())
        return any(says(table, "physdev") for table in tables)

    def tells(self, address: Address) -> Hashable:
        """Return what rules can tell of an address by what they do not spell out."""
        sets = self._ipsets.tells(address) if self._ipsets else None
        if POD_INTERFACE not in self.assumed or not self._devices.named:
            return sets
        return self._devices.side(address), sets

    @cached_property
    def of_sets(self) -> frozenset[Network]:
        """The networks of which rules ask by ipsets that hold addresses alone."""
        version = VERSIONS[self._family]
        asked = self._ipsets.asked(version)
        return frozenset(network for each in asked for network in networks_of(version, each))

    @property
    def are_told_by_ports_of_sets(self) -> bool:
        """Whether an ipset may tell frontends apart by their ports alone."""
        return self._ipsets.hold_ports and asks_sets(self._rulesets)

    @property
    def missed_sets(self) -> Iterable[str]:
        """Ipsets that rules asked for so far and of which nobody told what they hold."""
        return self._ipsets.missed

    @cached_property
    def asks_where_from(self) -> bool:
        """Whether a rule may match on the device that a flow comes in by, and something is told."""
        from analyzer.kubeproxy.matched.devices import asks_where_from

        return POD_INTERFACE in self.assumed and asks_where_from(self._rulesets)

    def _note_own_sources(self) -> None:
        self._asks_own_sources = True

    def note(self, bound: str) -> None:
        """Note a bound that was met, and what it means for the answer."""
        self._effort.note(bound)

    def _asked_bits(self) -> int:
        from analyzer.kubeproxy.matched.bits import asked_bits

        return asked_bits(self._rulesets)

    @property
    def exceeded(self) -> tuple[str, ...]:
        """The bounds on work that walks met, in words: what is behind them is unresolved."""
        met = (*self._hooks.exceeded, *self._effort.exceeded)
        return tuple(dict.fromkeys(met))

    def tree(
        self,
        frontend: Frontend,
        protocol: str,
        source: Source,
        address: Address | str | None = USUAL,
    ) -> Tree:
        """Return what the nat table makes of a new flow, from its hook on.

        `address` is where it comes from; None: that is not known.
        """
        packet = self.packets.sent_to(frontend, protocol, source, address)
        return self._hooks.to_nat(HOOKS[source], packet)

    def whole(
        self,
        frontend: Frontend,
        protocol: str,
        source: Source,
        address: Address | str | None = USUAL,
    ) -> Tree:
        """Return what all tables make of a new flow, as far as it gets."""
        from analyzer.kubeproxy.routes.service_tree import service_tree

        packet = self.packets.sent_to(frontend, protocol, source, address)
        assumed = Assumed(self._assumed.values)
        given = tuple(self._own), assumed, self._devices
        tree = service_tree(self._rulesets, self._family, packet, *given)
        self.trees_used |= assumed.used
        return tree

    def explored(
        self,
        frontend: Frontend,
        protocol: str,
        source: Source,
        of: Region | Address | str | None = USUAL,
        side: Side | None = None,
    ) -> Explored:
        """Return the ways of a frontend's flows `of` some sources, or of one; None: not known.

        `side` is that of all of them, of a source of which the kind does not tell it.
        """
        packet = self.packets.sent_to(frontend, protocol, source, of)
        packet = packet if side is None else replace(packet, comes_from=side)
        self._asks_own_sources = False
        tree = self._hooks.to_nat(HOOKS[source], packet)
        return self._explored(tree, source, asks_own_sources=self._asks_own_sources)

    def as_hairpin(self, explored: Explored) -> Explored:
        """Return the same ways, of flows that their endpoints make."""
        return explored.leaving_as(self._leaving_of(Source.HAIRPIN))

    def _leaving_of(self, source: Source) -> Callable[[Packet], OnwardBySource]:
        return lambda sent: self._leaving.by_source(behind_nat(sent, source))

    def _explored(self, tree: Tree, source: Source, *, asks_own_sources: bool = False) -> Explored:
        leaving = self._leaving_of(source)
        found = Explored(tree, VERSIONS[self._family], leaving, self._leaving.passing)
        found.asks_own_sources = asks_own_sources
        return found

    def onward(
        self,
        source: Source,
        protocol: str,
        endpoint: Endpoint,
        mark: Mark | None,
        address: Address | str | None = USUAL,
    ) -> Onward:
        """Tell what becomes of a flow that was sent to `endpoint` with `mark`, if any."""
        return self.onward_of(source, protocol, mark, address)(endpoint)

    def onward_of(
        self,
        source: Source,
        protocol: str,
        mark: Mark | None,
        address: Address | str | None = USUAL,
    ) -> Callable[[Endpoint], Onward]:
        """Return what tells the same of flows to any endpoint, quickly."""
        known = self.packets.sources[source] if isinstance(address, str) else address
        # An endpoint that sends to itself lives where it is known to live.
        side = self.side_of(known) if source is Source.HAIRPIN else None
        towards = self.towards(source, protocol, mark or Mark(), side)
        # With the parts, so that no others get their identity.
        told: dict[int, tuple[Parts[Onward], Onward]] = {}

        def onward(endpoint: Endpoint) -> Onward:
            parts, _ = towards(int(endpoint.address), endpoint.port)
            found = told.get(id(parts))
            if found is None:  # of flows to many endpoints it is one and the same
                key = id(parts), known
                if key not in self._told:
                    self._told[key] = parts, one_of(at(parts, known))
                found = told[id(parts)] = self._told[key]
            return found[1]

        return onward

    def onward_to_all(
        self, source: Source, protocol: str, mark: Mark | None, address: Address | None
    ) -> Onward | None:
        """Return what becomes of flows with `mark` to any endpoint of plain flows.

        A hairpin flow comes from its endpoint. None: it is not the same for all.
        """
        is_hairpin = source is Source.HAIRPIN
        if is_hairpin and self.asks_where_from:
            return None
        parts = self._leaving.to_all(self.packets.translated(source, protocol, mark or Mark()))
        if parts is None or (len(parts) > 1 and (is_hairpin or address is None)):
            return None
        return parts[0][1] if len(parts) == 1 else one_of(at(parts, address))

    def side_of(self, address: Address | None) -> Side | None:
        """Return the side that an endpoint's own flows come from; None: not known, or not asked."""
        return self._devices.side(address) if address is not None and self.asks_where_from else None

    def towards(
        self, source: Source, protocol: str, mark: Mark, side: Side | None = None
    ) -> Towards:
        """Return what tells what becomes of flows to each endpoint, by their sources.

        `side` is that of a source of which the kind does not tell it.
        """
        key = source, protocol, mark, side
        found = self._towards.get(key)
        if found is None:
            found = self._towards[key] = self._leaving.towards(self.packets.translated(*key))
        return found

    def asked_behind(self, source: Source, most: int) -> set[Intervals] | None:
        """Return the sources that rules behind nat tell apart, of plain flows that they meet.

        None: these rules tell more than `most` destinations apart.
        """
        every = (everything(VERSIONS[self._family]),)
        loses = self._asks_pairs and not self.spares(source, None, UNKNOWN_MARK, every)
        asked = self._leaving.asked(
            self.packets.translated(source, None, UNKNOWN_MARK), most, loses=loses
        )
        # Whether what is told of each side rests on them nobody knows before it is told.
        assumed = self._assumed
        assumed.used |= _OF_SIDES & assumed.wanted & assumed.values.keys()
        return asked

    def spares_all(self, mark: Mark, most: int) -> bool:
        """Tell whether no plain flow is lost that nat sends on with a mark.

        False, too, where rules tell more than `most` destinations apart; of none, where one walk
        or two do not tell.
        """
        within = self._leaving.within
        if all(self.spares(source, None, mark, within) for source in Source):
            return True
        if not most:
            return False
        ways = (self.packets.translated(source, None, mark) for source in Source)
        return all(self._leaving.spares_all(each, most) for each in ways)

    def spares(
        self, source: Source, protocol: str | None, mark: Mark, addresses: Intervals
    ) -> bool:
        """Tell whether no flow is lost that nat sends on to one of some addresses.

        False, too, where one walk or two do not tell, or something has to be assumed.
        """
        # Most often one walk tells of all that come in, from whatever side.
        sent = self.packets.translated(source, protocol, mark)
        ways = dict.fromkeys((from_any_side(sent), sent))
        return any(self._spares(each, addresses) for each in ways)

    def _spares(self, packet: Packet, addresses: Intervals) -> bool:
        key = packet, addresses
        if key not in self._spared:
            assumed = self._assumed
            before = assumed.used.copy(), assumed.wanted.copy()
            exceeded = self._hooks.exceeded
            found = self._leaving.spares(packet, addresses)
            is_sure = assumed.used == before[0] and exceeded == self._hooks.exceeded
            # What was met on the way is no ground of any answer yet.
            assumed.used, assumed.wanted = before
            self._hooks.forget(exceeded)
            self._spared[key] = found and is_sure
        return self._spared[key]
