"""Flows to frontends, walked through the nat hooks: whatever the rules say is in the shares."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final

from analyzer.kubeproxy import names
from analyzer.kubeproxy.asked_behind_nat import BehindNat
from analyzer.kubeproxy.between import NOTHING, Between
from analyzer.kubeproxy.view import Endpoint, Frontend, FrontendKind, Route, Share, Source
from analyzer.model.addresses import Address, Network
from analyzer.model.matches import MatchPhysdev
from analyzer.model.packet import Mark, Packet
from analyzer.model.probability import Bounds, Dyadic, capped_sum
from analyzer.model.targets import Dnat, NatRange
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.assumptions import rests_on_bridges
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.effort import Effort
from analyzer.semantics.hooks import Hooks
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import Leaf, Tree, shares

#: Where a flow from each kind of source enters the nat table.
HOOKS: Final = {
    Source.POD: "PREROUTING",
    Source.POD_ELSEWHERE: "PREROUTING",
    Source.NODE: "OUTPUT",
    Source.EXTERNAL: "PREROUTING",
    Source.HAIRPIN: "PREROUTING",  # of some endpoint, whose address is not known
}
#: Whether a source is an address of the node, which need not be known.
_FROM_NODE: Final = {
    Source.POD: False,
    Source.POD_ELSEWHERE: False,
    Source.NODE: True,
    Source.EXTERNAL: False,
}
#: Whether flows pass a port of a bridge. Of those from outside it is assumed, and said where it
#: matters (`rests_on_bridges`); pods may be behind one.
BRIDGE_PORT: Final = {Source.EXTERNAL: False}
#: The address of a source is that of its kind.
USUAL: Final = "usual"


class FlowWalks:
    """The general way to the shares of any route.

    `rulesets` are those of the node, `family` is ``ip`` or ``ip6``; `own` are the node's
    addresses, if known, and flows to a NodePort go to `node_port_address`, if that is.
    `between` is what rules between DNAT and POSTROUTING may change.

    Attributes:
        trees_rest_on_bridges: whether a rule asked flows from outside for ports of bridges that
            `whole` told of so far.
    """

    def __init__(
        self,
        rulesets: Sequence[Rules],
        family: str,
        own: tuple[Address, ...],
        sources: Mapping[Source, Address | None],
        between: Between = NOTHING,
        node_port_address: Address | None = None,
    ) -> None:
        self._rulesets = rulesets
        self._family = family
        self._sources = sources
        self._own = frozenset(own)
        self._situation = Situation(
            local_addresses=frozenset(own) if own else None, affinity_lists=names.AFFINITY_LISTS
        )
        #: What the walks of one chain alone may cost.
        self._effort = Effort(self._asked_bits)
        self._hooks = Hooks(rulesets, family, self._situation, asked_bits=self._asked_bits)
        self._between = between
        #: Kinds of matches that were looked at outside the hooks' own walks.
        self._judged: set[type] = set()
        self.trees_rest_on_bridges = False
        self._behind_nat = BehindNat(rulesets, family, self._situation)
        #: Whether packets are masqueraded, by what those have in common that are alike.
        self._known: dict[Hashable, Ternary] = {}
        # A flow to a NodePort goes to some address of the node, known or not.
        self._node_port_address = node_port_address or (own[0] if own else None)

    @property
    def rests_on_bridges(self) -> bool:
        """Whether a rule asked for ports of bridges so far."""
        return MatchPhysdev in self._hooks.judged or MatchPhysdev in self._judged

    def _asked_bits(self) -> int:
        from analyzer.kubeproxy.asked_bits import asked_bits

        return asked_bits(self._rulesets)

    @property
    def exceeded(self) -> tuple[str, ...]:
        """The bounds on work that walks met, in words: what is behind them is unresolved."""
        return tuple(dict.fromkeys((*self._hooks.exceeded, *self._effort.exceeded)))

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
        packet = self._flow(self._packet(source, address), frontend, protocol)
        return self._hooks.to_nat(HOOKS[source], packet)

    def whole(
        self,
        frontend: Frontend,
        protocol: str,
        source: Source,
        address: Address | str | None = USUAL,
    ) -> Tree:
        """Return what all tables make of a new flow, as far as it gets."""
        from analyzer.kubeproxy.service_tree import service_tree

        packet = self._flow(self._packet(source, address), frontend, protocol)
        if frontend.kind is FrontendKind.CLUSTER_IP:
            packet = replace(packet, to_node=False)
        judged: set[type] = set()
        tree = service_tree(self._rulesets, self._family, packet, tuple(self._own), judged)
        self.trees_rest_on_bridges |= rests_on_bridges(packet, judged)
        return tree

    def _flow(self, packet: Packet, frontend: Frontend, protocol: str) -> Packet:
        return replace(
            packet,
            protocol=protocol,
            destination=frontend.address or self._node_port_address,
            destination_port=frontend.port,
            to_node=True if frontend.address is None else None,
        )

    def _packet(self, source: Source, address: Address | str | None = USUAL) -> Packet:
        made_here = source is Source.NODE
        return Packet(
            source=self._sources[source] if isinstance(address, str) else address,
            in_interface="" if made_here else None,
            out_interface=None if made_here else "",
            from_node=_FROM_NODE.get(source),
            bridge_port=BRIDGE_PORT.get(source),
        )

    def route(
        self,
        frontend: Frontend,
        protocol: str,
        source: Source,
        address: Address | str | None = USUAL,
        network: Network | None = None,
    ) -> Route:
        """Return the distribution of a frontend's flows over endpoints.

        `address` stands for all sources in `network`.
        """
        tree = self.tree(frontend, protocol, source, address)
        return self._route(tree, frontend, source, network)

    def _route(
        self,
        tree: Tree,
        frontend: Frontend,
        source: Source,
        network: Network | None = None,
        leaves: dict[Endpoint, list[Leaf]] | None = None,
    ) -> Route:
        """Fold a tree; `leaves` takes the ends of the ways to each endpoint."""
        masquerades: dict[Endpoint, set[Ternary]] = {}

        def endpoint(leaf: Leaf) -> Endpoint | NatRange | None:
            if not isinstance(leaf.outcome, Dnat):
                return None
            if leaf.packet.destination is None:
                return leaf.outcome.to  # one of a range; which, the kernel chooses
            found = Endpoint(leaf.packet.destination, leaf.packet.destination_port)
            masquerades.setdefault(found, set()).add(self._masquerades(leaf.packet, source))
            if leaves is not None:
                leaves.setdefault(found, []).append(leaf)
            return found

        found = shares(tree, endpoint)
        ranges = {key: b.upper for key, b in found.items() if isinstance(key, NatRange)}
        return Route(
            frontend,
            source,
            tuple(
                Share(key, _widened(key, bounds, ranges), agreed(masquerades[key]))
                for key, bounds in found.items()
                if isinstance(key, Endpoint)
            ),
            capped_sum([found.unresolved, *ranges.values()]),
            network,
        )

    def masquerades(
        self,
        source: Source,
        protocol: str,
        endpoint: Endpoint,
        mark: Mark | None,
        address: Address | str | None = USUAL,
    ) -> Ternary:
        """Tell whether a flow that was sent to `endpoint` with `mark`, if any, is masqueraded."""
        packet = replace(
            self._packet(source, address),
            protocol=protocol,
            destination=endpoint.address,
            destination_port=endpoint.port,
            mark=mark or Mark(),
            translated=True,
        )
        return self._masquerades(packet, source)

    def _masquerades(self, packet: Packet, source: Source) -> Ternary:
        # A hairpin flow leaves: were its endpoint's address the node's own, so were its source's.
        leaves = source in {Source.NODE, Source.HAIRPIN}
        came = replace(packet, in_interface="" if leaves else None)
        passed = self._between.passed(came)
        alike = self._behind_nat.alike(passed)
        known = self._known.get(alike)
        if known is None:
            known = self._known[alike] = self._hooks.masquerades(passed)
        return known


def _widened(endpoint: Endpoint, bounds: Bounds, ranges: Mapping[NatRange, Dyadic]) -> Bounds:
    """Return the bounds, with what goes to a range that holds the endpoint's address too."""
    upper = [bounds.upper]
    for to, share in ranges.items():
        first, last = to.first_address, to.last_address or to.first_address
        same_port = (
            to.first_port is None
            or endpoint.port is None
            or (to.first_port <= endpoint.port <= (to.last_port or to.first_port))
        )
        if first is None or last is None or not same_port:
            continue
        if int(first) <= int(endpoint.address) <= int(last):
            upper.append(share)
    return Bounds(bounds.lower, capped_sum(upper))


def agreed(answers: set[Ternary]) -> bool | None:
    """Return the one answer that all give; None where they differ or do not know."""
    match sorted(answers, key=lambda t: t.value):
        case [Ternary.TRUE]:
            return True
        case [Ternary.FALSE]:
            return False
        case _:
            return None
