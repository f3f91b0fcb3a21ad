"""Flows through the hooks of a node whose Services are in rules of nft."""

from __future__ import annotations

from functools import cached_property

from analyzer.kubeproxy.asked_bits import bits_of_rule
from analyzer.kubeproxy.nft_asked import is_of_endpoint
from analyzer.kubeproxy.nft_chains import reached_by
from analyzer.kubeproxy.nft_entrances import NAT_HOOKS, base_chains
from analyzer.kubeproxy.nft_marked import marked_by
from analyzer.kubeproxy.nft_order import in_table
from analyzer.kubeproxy.route_walks import RouteWalks
from analyzer.kubeproxy.view import Endpoint, Frontend, Source
from analyzer.model.addresses import Address
from analyzer.model.nft import Chain, NftRuleset, Table
from analyzer.model.nft import Rule as NftRule
from analyzer.model.packet import ALL_BITS, Mark, Packet
from analyzer.model.probability import Bounds
from analyzer.model.targets import Dnat
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.assumptions import every_leaf
from analyzer.semantics.nft_traverse import NftTraversal
from analyzer.semantics.tree import Leaf, Tree, shares


class NftWalks(RouteWalks):
    """Walks through the rules of nft, and of what else the node has.

    A hairpin flow goes the way of any other pod's, which asks for no network that parts the two
    sources, as far as the chain of its endpoint. That is walked again with its own source.
    """

    @cached_property
    def _tables(self) -> dict[str, Table]:
        """The tables of nft by family and name; of two rulesets the first one's."""
        return {
            f"{family} {name}": table
            for ruleset in reversed(self._rulesets)
            if isinstance(ruleset, NftRuleset)
            for (family, name), table in ruleset.tables.items()
        }

    def ends(
        self, frontend: Frontend, protocol: str, source: Source, address: Address | None
    ) -> list[tuple[Endpoint, Bounds, frozenset[Mark]]] | None:
        """Return the endpoints of a route, their shares, and the marks that flows have there.

        None: something else may become of a flow.
        """
        marks: dict[Endpoint, set[Mark]] = {}

        def endpoint(leaf: Leaf) -> Endpoint | None:
            if not isinstance(leaf.outcome, Dnat) or leaf.packet.destination is None:
                return None
            found = Endpoint(leaf.packet.destination, leaf.packet.destination_port)
            marks.setdefault(found, set()).add(leaf.packet.mark)
            return found

        found = shares(self.tree(frontend, protocol, source, address), endpoint)
        if None in found or not found.is_exact:
            return None
        return [(key, b, frozenset(marks[key])) for key, b in found.items() if key is not None]

    def _returns(self, came: Packet, source: Source, leaf: Leaf) -> set[Ternary] | None:
        found = super()._returns(came, source, leaf)
        if found is not None:
            return found
        last = leaf.rules[-1] if leaf.rules else None
        if not isinstance(last, NftRule):
            return None
        table = self._tables[last.location.table]
        chain = table.chains.get(last.chain)
        if chain is None:
            return None
        again = replace(came, mark=leaf.packet.mark)
        if is_of_endpoint(chain):
            match self._walked(table, chain, again):
                case Leaf(Dnat(), sent):
                    return {self._masquerades(sent, source)}
                case _:
                    return None
        marked = marked_by(chain, table)
        if marked is None:
            # No chain asks for the endpoint itself, so the flow comes out as any other does.
            packet = replace(leaf.packet, source=came.source, from_node=came.from_node)
            return {self._masquerades(packet, source)}
        if marked.bits is None:
            return None
        # What the chain asks of sources marks their flows, and so the same may become of these.
        to = leaf.packet.destination, leaf.packet.destination_port
        ends = [each.packet for each in every_leaf(self._walked(table, chain, again))]
        there = [each for each in ends if (each.destination, each.destination_port) == to]
        return {self._masquerades(each, source) for each in there} or None

    def _walked(self, table: Table, chain: Chain, packet: Packet) -> Tree:
        """Return what one chain alone makes of a packet."""
        self._effort.begin()
        walk = NftTraversal(table, self._family, self._situation, self._effort)
        return walk.tree(chain.name, packet)

    def _chain_of(self, leaf: Leaf) -> str | None:
        last = leaf.rules[-1] if leaf.rules else None
        if not isinstance(last, NftRule):
            return None
        return in_table(self._tables[last.location.table], last.chain)

    @cached_property
    def bits_before(self) -> int:
        """The bits of marks that rules of nat may match on before flows leave the node."""
        if len(self._rulesets) > 1:
            return ALL_BITS  # of others it is not looked at
        bits = 0
        for table in self._tables.values():
            for chain in reached_by(table, base_chains(table, NAT_HOOKS, "nat")):
                for rule in chain.rules:
                    bits |= bits_of_rule(rule)
        return bits
