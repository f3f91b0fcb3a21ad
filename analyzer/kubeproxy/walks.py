"""Flows to frontends, walked through the nat hooks: whatever the rules say is in the shares."""

from __future__ import annotations

from collections.abc import Mapping

from analyzer.kubeproxy import names
from analyzer.kubeproxy.view import Endpoint, Frontend, Route, Share, Source
from analyzer.model.diagnostics import Location
from analyzer.model.packet import Address, Mark, Packet
from analyzer.model.probability import Bounds, Dyadic, capped_sum
from analyzer.model.rules import Chain, Rule, Ruleset, Table
from analyzer.model.targets import Accept, Dnat, Drop, NatRange
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.hooks import Hooks
from analyzer.semantics.situation import Situation
from analyzer.semantics.traverse import Traversal
from analyzer.semantics.tree import FellThrough, Leaf, Tree, shares

#: Where a flow from each kind of source enters the nat table.
HOOKS = {Source.POD: "PREROUTING", Source.EXTERNAL: "PREROUTING", Source.NODE: "OUTPUT"}


class NatWalks:
    """The general way to the shares of any route; `own` are the node's addresses, if known.

    `changed_bits` are those of the mark that rules between DNAT and POSTROUTING may change.
    """

    def __init__(
        self,
        ruleset: Ruleset,
        own: tuple[Address, ...],
        sources: Mapping[Source, Address | None],
        changed_bits: int = 0,
    ) -> None:
        self._table = ruleset.tables.get("nat") or Table(ruleset.family, "nat", {})
        self._sources = sources
        situation = Situation(
            local_addresses=frozenset(own) if own else None, affinity_lists=names.ENDPOINT_PREFIX
        )
        self._hooks = Hooks(ruleset, situation)
        self._changed_bits = changed_bits
        # A flow to a NodePort goes to some address of the node, known or not.
        self._node_port_address = own[0] if own else None

    def tree(self, frontend: Frontend, protocol: str, source: Source) -> Tree:
        """Return what the nat table makes of a new flow, from its hook on."""
        address = frontend.address or self._node_port_address
        packet = replace(
            self._packet(source),
            protocol=protocol,
            destination=address,
            destination_port=frontend.port,
            to_node=True if frontend.address is None else None,
        )
        return self._hooks.to_nat(HOOKS[source], packet)

    def _packet(self, source: Source) -> Packet:
        made_here = source is Source.NODE
        return Packet(
            source=self._sources[source],
            in_interface="" if made_here else None,
            out_interface=None if made_here else "",
        )

    def route(self, frontend: Frontend, protocol: str, source: Source) -> Route:
        """Return the distribution of a frontend's flows over endpoints."""
        masquerades: dict[Endpoint, set[Ternary]] = {}

        def endpoint(leaf: Leaf) -> Endpoint | NatRange | None:
            if not isinstance(leaf.outcome, Dnat):
                return None
            if leaf.packet.destination is None:
                return leaf.outcome.to  # one of a range; which, the kernel chooses
            found = Endpoint(leaf.packet.destination, leaf.packet.destination_port)
            masquerades.setdefault(found, set()).add(self._masquerades(leaf.packet, source))
            return found

        found = shares(self.tree(frontend, protocol, source), endpoint)
        ranges = {key: b.upper for key, b in found.items() if isinstance(key, NatRange)}
        return Route(
            frontend,
            source,
            tuple(
                Share(key, _widened(key, bounds, ranges), _agreed(masquerades[key]))
                for key, bounds in found.items()
                if isinstance(key, Endpoint)
            ),
            capped_sum([found.unresolved, *ranges.values()]),
        )

    def reaches_services(self, source: Source) -> bool:
        """Tell whether every packet from `source` comes to KUBE-SERVICES, unchanged and first.

        Walked with nothing known of where the packet goes, and a verdict in that chain's place.
        """
        here = Rule((), Drop(), Location("", 0), "")
        chains = {
            name: chain
            for name, chain in self._table.chains.items()
            if not name.startswith((names.ENDPOINT_PREFIX, *names.SERVICE_PREFIXES))
        }
        chains[names.SERVICES] = Chain(names.SERVICES, (here,))
        packet = self._packet(source)
        walk = Traversal(replace(self._table, chains=chains))
        match walk.tree(HOOKS[source], packet):
            case Leaf(Drop(), reached, rules):
                return reached == packet and rules[-1] is here
            case _:
                return False

    def comes_to_nat(self, source: Source) -> bool:
        """Tell whether every packet from `source` comes to the nat table, unchanged."""
        packet = self._packet(source)
        match self._hooks.before_nat(HOOKS[source], packet):
            case Leaf(FellThrough() | Accept(), reached):
                return reached == packet
            case _:
                return False

    def mark_of_masquerade(self) -> Mark | None:
        """Return the mark that KUBE-MARK-MASQ gives to a packet without one, if it is certain."""
        match Traversal(self._table).tree(names.MARK_MASQUERADE, Packet()):
            case Leaf(FellThrough(), packet):
                return packet.mark
            case _:
                return None

    def masquerades(
        self, source: Source, protocol: str, endpoint: Endpoint, mark: Mark | None
    ) -> Ternary:
        """Tell whether a flow that was sent to `endpoint` with `mark`, if any, is masqueraded."""
        packet = replace(
            self._packet(source),
            protocol=protocol,
            destination=endpoint.address,
            destination_port=endpoint.port,
            mark=mark or Mark(),
            translated=True,
        )
        return self._masquerades(packet, source)

    def _masquerades(self, packet: Packet, source: Source) -> Ternary:
        came = replace(packet, in_interface="" if source is Source.NODE else None)
        return self._hooks.masquerades(came, changed_bits=self._changed_bits)


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


def _agreed(answers: set[Ternary]) -> bool | None:
    match sorted(answers, key=lambda t: t.value):
        case [Ternary.TRUE]:
            return True
        case [Ternary.FALSE]:
            return False
        case _:
            return None
