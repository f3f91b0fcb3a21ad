"""Flows to frontends, walked through the nat hooks: whatever the rules say is in the shares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from analyzer.kubeproxy import names
from analyzer.kubeproxy.view import Endpoint, Frontend, Route, Share, Source
from analyzer.model.diagnostics import Location
from analyzer.model.matches import (
    MatchComment,
    MatchProtocol,
    MatchRecent,
    MatchSctp,
    MatchSource,
    MatchTcp,
    MatchUdp,
)
from analyzer.model.packet import Address, Mark, Network, Packet
from analyzer.model.probability import NEVER, Bounds, Dyadic, capped_sum
from analyzer.model.rules import Chain, Rule, Ruleset, Table
from analyzer.model.targets import Accept, Dnat, Drop, Goto, Jump, NatRange
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.hooks import Hooks
from analyzer.semantics.situation import Situation
from analyzer.semantics.traverse import Traversal
from analyzer.semantics.tree import FellThrough, Leaf, Tree, shares

#: Where a flow from each kind of source enters the nat table.
_HOOKS: Final = {
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
#: What kube-proxy's rules ask for in a KUBE-SEP chain.
_OF_ENDPOINT: Final = (
    MatchSource,
    MatchProtocol,
    MatchComment,
    MatchTcp,
    MatchUdp,
    MatchSctp,
    MatchRecent,
)
#: The address of a source is that of its kind.
USUAL: Final = "usual"


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
        self._own = frozenset(own)
        situation = Situation(
            local_addresses=frozenset(own) if own else None, affinity_lists=names.ENDPOINT_PREFIX
        )
        self._hooks = Hooks(ruleset, situation)
        self._changed_bits = changed_bits
        self._known: dict[Packet, Ternary] = {}
        # A flow to a NodePort goes to some address of the node, known or not.
        self._node_port_address = own[0] if own else None

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
        return self._hooks.to_nat(_HOOKS[source], packet)

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
                Share(key, _widened(key, bounds, ranges), _agreed(masquerades[key]))
                for key, bounds in found.items()
                if isinstance(key, Endpoint)
            ),
            capped_sum([found.unresolved, *ranges.values()]),
            network,
        )

    def behind(self, chain: str, frontend: Frontend, protocol: str, source: Source) -> Route:
        """Return the distribution of the flows that come to a chain of a Service.

        For a frontend whose port is not known: what its rules before that chain match is not
        known either, and so neither is the masquerade.
        """
        packet = self._flow(self._packet(source), frontend, protocol)
        route = self._route(Traversal(self._table).tree(chain, packet), frontend, source)
        shares = tuple([replace(share, masquerade=None) for share in route.shares])
        return replace(route, shares=shares)

    def hairpin(
        self,
        frontend: Frontend,
        protocol: str,
        endpoints: Iterable[Endpoint],
        asked: frozenset[Network],
    ) -> Route:
        """Return, for each endpoint, the share of its own flows that come back to it.

        Endpoints that the Service's rules, which ask for the networks `asked`, do not tell apart
        as sources have the same ways, but for the KUBE-SEP chain that asks for the endpoint.
        """
        ways: dict[object, tuple[dict[Endpoint, Share], dict[Endpoint, list[Leaf]], Dyadic]] = {}
        found: list[Share] = []
        unresolved = NEVER
        for endpoint in endpoints:
            source = Source.NODE if endpoint.address in self._own else Source.HAIRPIN
            kind = source, frozenset(n for n in asked if endpoint.address in n)
            if kind not in ways:
                leaves: dict[Endpoint, list[Leaf]] = {}
                # Whose address it is only the KUBE-SEP chains ask, besides those networks.
                tree = self.tree(frontend, protocol, source, endpoint.address)
                route = self._route(tree, frontend, source, None, leaves)
                by_endpoint = {s.endpoint: s for s in route.shares}
                ways[kind] = by_endpoint, leaves, route.unresolved
            shares_of, leaves, open_ = ways[kind]
            share = shares_of.get(endpoint)
            if share is not None:
                came = self._flow(self._packet(source, endpoint.address), frontend, protocol)
                answers = {self._returns(came, source, leaf) for leaf in leaves[endpoint]}
                known = {answer for answer in answers if answer is not None}
                if known == answers:
                    share = replace(share, masquerade=_agreed(known))
                else:
                    route = self.route(frontend, protocol, source, endpoint.address)
                    share = next((s for s in route.shares if s.endpoint == endpoint), None)
                    open_ = route.unresolved
            unresolved = max(unresolved, open_)
            found += [] if share is None else [share]
        return Route(frontend, Source.HAIRPIN, tuple(found), unresolved)

    def _returns(self, came: Packet, source: Source, leaf: Leaf) -> Ternary | None:
        """Tell whether a flow is masqueraded that comes as `came` and goes the way to `leaf`.

        None: that has to be walked, since the way ends in no usual KUBE-SEP chain.
        """
        if leaf.packet.source == came.source:
            return self._masquerades(leaf.packet, source)
        chains = [rule.target.chain for rule in leaf.rules if isinstance(rule.target, Jump | Goto)]
        if not chains or not self._is_usual(chains[-1]):
            return None
        match Traversal(self._table).tree(chains[-1], replace(came, mark=leaf.packet.mark)):
            case Leaf(Dnat(), packet):
                return self._masquerades(packet, source)
            case _:
                return None

    def _is_usual(self, chain: str) -> bool:
        """Tell whether a chain marks flows of its endpoint, sends all on, and does nothing else."""
        rules = self._table.chains[chain].rules
        return all(
            isinstance(rule.target, Dnat) or rule.target == Jump(names.MARK_MASQUERADE)
            for rule in rules
        ) and all(isinstance(match, _OF_ENDPOINT) for rule in rules for match in rule.matches)

    def reaches_services(self, source: Source) -> bool:
        """Tell whether every packet from `source` comes to KUBE-SERVICES, unchanged and first.

        Walked with nothing known of where the packet goes or comes from, and a verdict in that
        chain's place.
        """
        here = Rule((), Drop(), Location("", 0), "")
        chains = {
            name: chain
            for name, chain in self._table.chains.items()
            if not name.startswith((names.ENDPOINT_PREFIX, *names.SERVICE_PREFIXES))
        }
        chains[names.SERVICES] = Chain(names.SERVICES, (here,))
        packet = self._packet(source, None)
        walk = Traversal(replace(self._table, chains=chains))
        match walk.tree(_HOOKS[source], packet):
            case Leaf(Drop(), reached, rules):
                return reached == packet and rules[-1] is here
            case _:
                return False

    def comes_to_nat(self, source: Source) -> bool:
        """Tell whether every packet from `source` comes to the nat table, unchanged."""
        packet = self._packet(source, None)
        match self._hooks.before_nat(_HOOKS[source], packet):
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
        known = self._known.get(came)
        if known is None:  # frontends of one Service lead to the same endpoints
            known = self._hooks.masquerades(came, changed_bits=self._changed_bits)
            self._known[came] = known
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


def _agreed(answers: set[Ternary]) -> bool | None:
    match sorted(answers, key=lambda t: t.value):
        case [Ternary.TRUE]:
            return True
        case [Ternary.FALSE]:
            return False
        case _:
            return None
