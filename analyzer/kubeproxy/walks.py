"""Flows to frontends, walked through the nat hooks: whatever the rules say is in the shares."""

from __future__ import annotations

from collections.abc import Mapping

from analyzer.kubeproxy import names
from analyzer.kubeproxy.sources import SOME_NODE_ADDRESS
from analyzer.kubeproxy.view import Endpoint, Frontend, Route, Share, Source
from analyzer.model.diagnostics import Location
from analyzer.model.packet import Address, Packet
from analyzer.model.rules import Chain, Rule, Ruleset, Table
from analyzer.model.targets import Dnat, Drop
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.hooks import NatHooks
from analyzer.semantics.situation import Situation
from analyzer.semantics.traverse import Traversal
from analyzer.semantics.tree import FellThrough, Leaf, Tree, shares

#: Where a flow from each kind of source enters the nat table.
HOOKS = {Source.POD: "PREROUTING", Source.EXTERNAL: "PREROUTING", Source.NODE: "OUTPUT"}


class NatWalks:
    """The general way to the shares of any route; `own` are the node's addresses, if known."""

    def __init__(
        self,
        ruleset: Ruleset,
        own: tuple[Address, ...],
        sources: Mapping[Source, Address | None],
    ) -> None:
        self._table = ruleset.tables.get("nat") or Table(ruleset.family, "nat", {})
        self._sources = sources
        self._hooks = NatHooks(ruleset, Situation(local_addresses=frozenset(own) if own else None))
        # A flow to a NodePort goes to some address of the node, whichever that is.
        self._some_address = own[0] if own else SOME_NODE_ADDRESS[ruleset.family]
        self._node_port_hooks = NatHooks(
            ruleset, Situation(local_addresses=frozenset([*own, self._some_address]))
        )

    def tree(self, frontend: Frontend, protocol: str, source: Source) -> Tree:
        """Return what the nat table makes of a new flow, from its hook on."""
        address = self._some_address if frontend.address is None else frontend.address
        packet = replace(
            self._packet(source),
            protocol=protocol,
            destination=address,
            destination_port=frontend.port,
        )
        return self._hooks_of(frontend).walk(HOOKS[source], packet)

    def _hooks_of(self, frontend: Frontend) -> NatHooks:
        return self._node_port_hooks if frontend.address is None else self._hooks

    def _packet(self, source: Source) -> Packet:
        made_here = source is Source.NODE
        return Packet(
            source=self._sources[source],
            in_interface="" if made_here else None,
            out_interface=None if made_here else "",
        )

    def route(self, frontend: Frontend, protocol: str, source: Source) -> Route:
        """Return the distribution of a frontend's flows over endpoints."""
        hooks = self._hooks_of(frontend)
        masquerades: dict[Endpoint, set[Ternary]] = {}

        def endpoint(leaf: Leaf) -> Endpoint | Ternary:
            if not isinstance(leaf.outcome, Dnat):
                return Ternary.FALSE
            if leaf.packet.destination is None:
                return Ternary.UNKNOWN
            found = Endpoint(leaf.packet.destination, leaf.packet.destination_port)
            masquerades.setdefault(found, set()).add(hooks.masquerades(leaf.packet))
            return found

        found = shares(self.tree(frontend, protocol, source), endpoint)
        some_range = found.get(Ternary.UNKNOWN)
        return Route(
            frontend,
            source,
            tuple(
                Share(key, bounds, _agreed(masquerades[key]))
                for key, bounds in found.items()
                if isinstance(key, Endpoint)
            ),
            found.unresolved if some_range is None else some_range.upper,
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
            case Leaf(Drop(), reached):
                return reached == packet
            case _:
                return False

    def mark_of_masquerade(self) -> int | None:
        """Return the mark that KUBE-MARK-MASQ gives to a packet without one, if it is certain."""
        match Traversal(self._table).tree(names.MARK_MASQUERADE, Packet()):
            case Leaf(FellThrough(), packet):
                return packet.mark
            case _:
                return None

    def masquerades(
        self, source: Source, protocol: str, endpoint: Endpoint, mark: int | None
    ) -> Ternary:
        """Tell whether a flow that was sent to `endpoint` with `mark` leaves masqueraded."""
        packet = replace(
            self._packet(source),
            protocol=protocol,
            destination=endpoint.address,
            destination_port=endpoint.port,
            mark=mark,
            translated=True,
        )
        return self._hooks.masquerades(packet)


def _agreed(answers: set[Ternary]) -> bool | None:
    match sorted(answers, key=lambda t: t.value):
        case [Ternary.TRUE]:
            return True
        case [Ternary.FALSE]:
            return False
        case _:
            return None
