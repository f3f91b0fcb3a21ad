"""One of the two dumps, of one IP version, and queries on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from analyzer.errors import UsageError
from analyzer.kubeproxy.diff.changes import NO_SERVICE, UNRESOLVED, Otherwise, RouteIdentity
from analyzer.kubeproxy.diff.others import of_others
from analyzer.kubeproxy.matched.devices import asked_devices, dispatched
from analyzer.kubeproxy.routes.packets import SIDES, bridge_port
from analyzer.kubeproxy.routes.trace import Question, trace, way
from analyzer.kubeproxy.view import (
    Endpoint,
    Frontend,
    FrontendKind,
    Route,
    ServicePort,
    Source,
    View,
)
from analyzer.model.addresses import IPV4, Address, Network
from analyzer.model.cluster import Cluster
from analyzer.model.intervals import Intervals
from analyzer.model.packet import NO_DEVICE, Packet
from analyzer.model.probability import ALWAYS, NEVER, Bounds
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace, value
from analyzer.semantics.assumed import DEFAULTS, Assumed
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.devices import NodeDevices, PodPlaces
from analyzer.semantics.fate import fate_of
from analyzer.semantics.shares import shares
from analyzer.semantics.tree import AnyRule, Leaf, Tree

#: Returns the address that represents the sources of a route of an IP version; None: not known.
RepresentativeOf: TypeAlias = Callable[[int, Frontend, str, Source, Network | None], Address | None]

#: Whether a source is an address of the node; the address itself may not be known.
_FROM_NODE: Final = {
    Source.POD: False,
    Source.POD_ELSEWHERE: False,
    Source.NODE: True,
    Source.EXTERNAL: False,
}


@value
class PacketEnds:
    """How a packet ends, as shares of all such packets, and the rules on the likeliest way."""

    ends: Otherwise
    rules: tuple[AnyRule, ...]


class DumpSide:
    """A dump, its ServicePorts, and what happens to any packet there.

    `rulesets` are all that the node has, that of the dump first; `places` returns where addresses
    are.

    Attributes:
        own: the node's addresses; empty: not known.
        node_port_address: the node's address to which flows to a NodePort go, if known.
        used: names of the assumptions that all results so far rest on.
    """

    def __init__(
        self,
        rulesets: Sequence[Rules],
        view: View,
        cluster: Cluster,
        *,
        version: int,
        sources: RepresentativeOf,
        own: tuple[Address, ...] = (),
        node_port_address: Address | None = None,
        assumed: Mapping[str, str] = DEFAULTS,
        places: Callable[[], PodPlaces] = PodPlaces,
        bridges: Callable[[], Intervals | None] = lambda: None,
    ) -> None:
        self.view = view
        self.own = own
        self.node_port_address = node_port_address
        self.used: set[str] = set()
        self._assumed = assumed
        self._bridge_port = bridge_port(assumed)
        self._rulesets = rulesets
        self._devices = NodeDevices(
            lambda: asked_devices(rulesets),
            places,
            lambda leaving: dispatched(rulesets, leaving=leaving),
        )
        self._bridges = bridges
        self._cluster = cluster
        self._version = version
        self._sources = sources

    def at_the_same_node(self, other: DumpSide) -> None:
        """Use what only the other dump shows of the node, if it is the same node."""
        if self.view.node == other.view.node:
            self.node_port_address = self.node_port_address or other.node_port_address

    def rules_of_others(self) -> tuple[str, ...]:
        """Return the rules of other programs, equal if they are the same in both dumps."""
        return of_others(self._rulesets, self._family)

    def has(self, endpoint: Address) -> Ternary:
        """Return whether an endpoint is on the node that the dump is from."""
        if endpoint in self.own:
            return Ternary.TRUE
        node, home = self.view.node, self._cluster.placement(endpoint).node
        return Ternary.UNKNOWN if node is None or home is None else Ternary.of(node == home)

    def otherwise(self, protocol: str, route: RouteIdentity | Route) -> Otherwise:
        """Return what happens to flows on `route` that reach no endpoint, or get no answer."""
        question = replace(self._question(self.packet(protocol, route)), follows_answers=True)
        try:
            assumed = Assumed(self._assumed)
            tree = way(self._rulesets, question, self._family, assumed)
        except UsageError:  # a frontend's address is not unicast, for example multicast
            return ((UNRESOLVED, Bounds(NEVER, ALWAYS)),)
        self.used |= assumed.used
        return tuple([end for end in _ends(tree) if end[0] != "endpoint"])

    def direct(
        self, service: ServicePort, source: Source, client: Address | None, endpoint: Endpoint
    ) -> Otherwise:
        """Return how flows end that a source, or one `client` of it, sends to an endpoint."""
        identity = RouteIdentity(service.frontends[0], source, None)
        packet = replace(
            self.packet(service.protocol, identity),
            destination=endpoint.address,
            destination_port=endpoint.port,
            to_node=None,
            cluster_ip=None,
        )
        if client is not None:
            packet = replace(packet, source=client)
        question = self._question(packet)
        question = replace(question, follows_answers=True, follows_unchanged=True)
        try:
            assumed = Assumed(self._assumed)
            return _ends(way(self._rulesets, question, self._family, assumed))
        except UsageError:  # an address that no packet has
            return ((UNRESOLVED, Bounds(NEVER, ALWAYS)),)

    def packet(self, protocol: str, route: RouteIdentity | Route) -> Packet:
        """Return the first packet of a flow on `route`."""
        frontend, source = route.frontend, route.source
        return Packet(
            protocol=protocol,
            source=self._sources(self._version, frontend, protocol, source, route.network),
            destination=frontend.address or self.node_port_address,
            destination_port=frontend.port,
            in_interface=NO_DEVICE if source is Source.NODE else None,
            from_node=_FROM_NODE[source],
            bridge_port=self._bridge_port.get(source),
            comes_from=SIDES.get(source),
            to_node=True if frontend.address is None else None,
            cluster_ip=frontend.address if frontend.kind is FrontendKind.CLUSTER_IP else None,
        )

    def fate(self, packet: Packet) -> PacketEnds:
        """Return how a packet ends after all tables and hooks."""
        try:
            found = trace(self._rulesets, self._question(packet), self._family)
        except UsageError:
            return PacketEnds(((UNRESOLVED, Bounds(NEVER, ALWAYS)),), ())
        self.used |= found.used
        return PacketEnds(_ends(found.tree), found.ends[0].rules)

    @property
    def _family(self) -> str:
        return "ip" if self._version == IPV4 else "ip6"

    def _question(self, packet: Packet) -> Question:
        return Question(
            packet=packet,
            addresses=self.own or None,
            assumed=self._assumed,
            devices=self._devices,
            bridges=self._bridges,
        )


def _ends(tree: Tree) -> Otherwise:
    bounds = shares(tree, _kind)
    known = {kind: share for kind, share in bounds.items() if share.upper}
    open_ = known.pop(UNRESOLVED, Bounds(NEVER, bounds.unresolved))
    found = sorted(known.items(), key=lambda each: each[0])
    return (*found, (UNRESOLVED, open_)) if open_.upper else tuple(found)


def _kind(leaf: Leaf) -> str:
    """Return how a leaf of a whole way ends.

    Local delivery counts as no-service: which host has the destination address is not up to the
    rules.
    """
    kind = fate_of(leaf).kind
    return NO_SERVICE if kind == "local" else kind
