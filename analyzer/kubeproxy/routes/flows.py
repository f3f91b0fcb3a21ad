"""Flows to frontends, evaluated from the nat hooks on, so that shares include every rule."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import cached_property

from analyzer.kubeproxy import names
from analyzer.kubeproxy.matched.devices import asked_devices, dispatched
from analyzer.kubeproxy.matched.sets import asks_pairs, asks_sets, node_ipsets
from analyzer.kubeproxy.routes.after_dnat import AfterDnat
from analyzer.kubeproxy.routes.before_dnat import BeforeDnat
from analyzer.kubeproxy.routes.hairpins import Hairpins, listed
from analyzer.kubeproxy.routes.leaving import Leaving, Towards, from_any_side
from analyzer.kubeproxy.routes.packets import (
    HOOKS,
    USUAL,
    FlowPackets,
    UsualAddress,
    behind_nat,
    bridge_port,
)
from analyzer.kubeproxy.routes.spared import Spared
from analyzer.kubeproxy.view import Frontend, Source
from analyzer.model.addresses import VERSIONS, Address, Network
from analyzer.model.devices import Side
from analyzer.model.intervals import Intervals, everything, networks_of
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.packet import UNKNOWN_MARK, Mark, Packet
from analyzer.model.region import Region
from analyzer.model.value import replace
from analyzer.semantics.assumed import (
    DEFAULTS,
    POD_INTERFACE,
    Assumed,
)
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.devices import NodeDevices, PodPlaces
from analyzer.semantics.effort import Effort
from analyzer.semantics.hooks import Hooks
from analyzer.semantics.masquerade import MasqueradeAddresses
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.kubeproxy.routes.explored import Explored
    from analyzer.kubeproxy.routes.up_to_nat import NatTree, UpToNat


class FlowWalks:
    """The general way to the shares of any route.

    `rulesets` are those of the node, `family` is ``ip`` or ``ip6``; `own` are the node's
    addresses, if known, and flows to a NodePort go to `node_port_address`, if given.
    `assumed` are the assumptions beyond the rules; None: the default ones; `places` returns where
    addresses are, `within` the addresses among which all endpoints of plain flows are; None: all.

    Attributes:
        before_dnat: what their packets are before DNAT.
        after_dnat: what happens to them after DNAT.
        hairpins: what happens to those that return to their endpoint.
        spared: tells which flows are certainly not lost.
        trees_used: names of assumptions on which the trees rest that `whole` has returned so far.
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
        cluster_ips: Callable[[], Collection[Address]] = frozenset,
        bridges: Callable[[], Intervals | None] = lambda: None,
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
        self.hairpins = Hairpins(
            self._own,
            self._devices.side,
            lambda: listed(rulesets, family),
            lambda: self._devices.knows_any,
        )
        self._ipsets = node_ipsets(rulesets)
        self._situation = Situation(
            assumed=self._assumed,
            devices=self._devices,
            ipsets=self._ipsets,
            cluster_ips=cluster_ips,
            masquerades=MasqueradeAddresses(self._own, bridges),
            local_addresses=frozenset(own) if own else None,
            affinity_lists=names.AFFINITY_LISTS,
            noted=self._note_own_sources,
        )
        #: Whether a rule matched on packets being from the node itself, since a traversal began.
        self._asks_own_sources = False
        #: Bounds the work of traversals of single chains.
        self._effort = Effort(self._asked_bits)
        self._hooks = Hooks(
            rulesets,
            family,
            self._situation,
            asked_bits=self._asked_bits,
            follows_answers=True,
        )
        #: The ways of the kind of source before, which may differ from those of the next in little.
        self._last: Explored | None = None
        self.trees_used: set[str] = set()
        self._asks_pairs = asks_pairs(rulesets)
        pairs = self._asks_pairs
        self._leaving = Leaving(self._hooks, family, asks_pairs=pairs, within=within)
        # A flow to a NodePort goes to some address of the node, which may not be known.
        node_port_address = node_port_address or (own[0] if own else None)
        self.packets = FlowPackets(sources, bridge_port(self.assumed), node_port_address)
        self.spared = Spared(self._hooks, self._leaving, self.packets, self._assumed)
        given = rulesets, self.packets, self._hooks, self._devices
        self.before_dnat = BeforeDnat(*given, self._spares_own)
        self.after_dnat = AfterDnat(
            self._leaving, self.packets, self._devices, lambda: self.asks_where_from
        )

    @property
    def used(self) -> set[str]:
        """Names of the assumptions that decided a match so far."""
        return self._assumed.used

    @property
    def assumed(self) -> Mapping[str, str]:
        """The assumptions beyond the rules, by name."""
        return self._assumed.values

    @cached_property
    def asks_bridges(self) -> bool:
        """Whether a rule may match on bridge ports."""
        from analyzer.kubeproxy.rows.texts import says

        tables = (t for r in self._rulesets if isinstance(r, Ruleset) for t in r.tables.values())
        return any(says(table, "physdev") for table in tables)

    def tells(self, address: Address) -> Hashable:
        """Return what rules may match on of an address other than the address itself."""
        sets = self._ipsets.tells(address) if self._ipsets else None
        if not self._devices.named:
            return sets
        side = self._devices.side(address)
        if side is not Side.POD and self._devices.is_routed:
            return side, self._devices.routed(address), sets
        return sets if POD_INTERFACE not in self.assumed else (side, sets)

    @cached_property
    def of_sets(self) -> frozenset[Network]:
        """The networks of which rules ask by ipsets that hold addresses alone."""
        version = VERSIONS[self._family]
        asked = self._ipsets.asked(version)
        return frozenset(network for each in asked for network in networks_of(version, each))

    @property
    def are_told_by_ports_of_sets(self) -> bool:
        """Whether an ipset may distinguish frontends by nothing but their ports."""
        return self._ipsets.hold_ports and asks_sets(self._rulesets)

    @property
    def missed_sets(self) -> Iterable[str]:
        """Ipsets that rules have matched on so far and whose members are not known."""
        return self._ipsets.missed

    @cached_property
    def asks_where_from(self) -> bool:
        """Whether rules may match on the device of a client, and pods' interfaces are assumed."""
        from analyzer.kubeproxy.matched.devices import asks_where_from

        return POD_INTERFACE in self.assumed and asks_where_from(self._rulesets)

    def _note_own_sources(self) -> None:
        self._asks_own_sources = True

    def note(self, bound: str) -> None:
        """Note a bound that was reached, and what it means for the result."""
        self._effort.note(bound)

    def _asked_bits(self) -> int:
        from analyzer.kubeproxy.matched.bits import asked_bits

        return asked_bits(self._rulesets)

    @property
    def exceeded(self) -> tuple[str, ...]:
        """The bounds on work that traversals reached, in words: what lies beyond is unresolved."""
        met = (*self._hooks.exceeded, *self._effort.exceeded)
        return tuple(dict.fromkeys(met))

    def tree(self, frontend: Frontend, protocol: str, source: Source) -> Tree:
        """Return what the nat table does to a new flow, from its hook on."""
        packet = self.before_dnat.sent_to(frontend, protocol, source, USUAL)
        return self._hooks.to_nat(HOOKS[source], packet)

    def whole(
        self,
        frontend: Frontend,
        protocol: str,
        source: Source,
        address: Address | UsualAddress | None = USUAL,
    ) -> Tree:
        """Return what all tables do to a new flow, up to its end."""
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
        of: Region | Address | UsualAddress | None = USUAL,
        side: Side | None = None,
        among: Region | None = None,
    ) -> Explored:
        """Return the ways of a frontend's flows `of` some sources, or of one; None: not known.

        `side` is that of all of them, if the kind of source does not determine it; `among` contains
        them and may be evaluated in their place.
        """
        packet = self.before_dnat.sent_to(frontend, protocol, source, of)
        packet = packet if side is None else replace(packet, comes_from=side)
        self._asks_own_sources = False
        found = self._explored(self._up_to_nat.of(HOOKS[source], packet, among), source)
        found.asks_own_sources = self._asks_own_sources
        return found

    @cached_property
    def _up_to_nat(self) -> UpToNat:
        from analyzer.kubeproxy.routes.up_to_nat import UpToNat  # few dumps need it

        return UpToNat(self._hooks)

    def as_hairpin(self, explored: Explored) -> Explored:
        """Return the same ways, of flows from the endpoints themselves."""
        return explored.leaving_as(self._leaving_of(Source.HAIRPIN))

    def _leaving_of(self, source: Source) -> Callable[[Packet], Towards]:
        return lambda sent: self._leaving.towards(behind_nat(sent, source))

    def _explored(self, found: NatTree, source: Source) -> Explored:
        from analyzer.kubeproxy.routes.explored import Explored  # few dumps need it

        leaving, passing = self._leaving_of(source), self._leaving.passing
        same = None if self._last is None else self._last.like(found, leaving)
        self._last = same or Explored(found, VERSIONS[self._family], leaving, passing)
        return self._last

    def asked_behind(self, source: Source, most: int) -> set[Intervals] | None:
        """Return the sources that rules after nat distinguish, of the plain flows that reach them.

        None: these rules distinguish more than `most` destinations.
        """
        every = (everything(VERSIONS[self._family]),)
        loses = self._asks_pairs and not self.spared.are(source, None, UNKNOWN_MARK, every)
        sent = self.packets.translated(source, None, self.plain_mark)
        used = self._assumed.used.copy()
        asked = self._leaving.asked(sent, most, loses=loses)
        if self._assumed.used != used:
            # That of destinations to which no flow is sent, perhaps; of the others it is found out.
            self._assumed.used = used
            self._leaving.distrust(sent)
        if asked is None:  # not all was evaluated: what all of it rests on is found at once
            exceeded = self._hooks.exceeded
            self._leaving.spares(from_any_side(sent), self._leaving.within)
            self._hooks.forget(exceeded)
        return asked

    @property
    def plain_mark(self) -> Mark:
        """What is known of the marks of plain flows after nat."""
        return UNKNOWN_MARK

    def _spares_own(self) -> bool:
        """Return whether no flow of the node is lost, whatever its mark and its destination."""
        if self.spared.at_once(Source.NODE, self.plain_mark) is False:
            return False
        every = (everything(VERSIONS[self._family]),)
        return self.spared.are(Source.NODE, None, UNKNOWN_MARK, every)
