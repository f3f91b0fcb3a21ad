"""Flows through the hooks of a node whose Services are in rules of nft."""

from __future__ import annotations

from functools import cached_property

from analyzer.kubeproxy.flows import FlowWalks
from analyzer.kubeproxy.nft_asked import is_of_endpoint
from analyzer.kubeproxy.view import Endpoint, Frontend, Source
from analyzer.model.addresses import Address
from analyzer.model.nft import Chain, NftRuleset, Table
from analyzer.model.nft import Rule as NftRule
from analyzer.model.packet import Mark, Packet
from analyzer.model.probability import Bounds
from analyzer.model.targets import Dnat
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.nft_traverse import NftTraversal
from analyzer.semantics.tree import Leaf, shares


class NftWalks(FlowWalks):
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
        if not is_of_endpoint(chain):
            # No chain asks for the endpoint itself, so the flow comes out as any other does.
            packet = replace(leaf.packet, source=came.source, from_node=came.from_node)
            return {self._masquerades(packet, source)}
        return self._again(table, chain, replace(came, mark=leaf.packet.mark), source)

    def _again(
        self, table: Table, chain: Chain, packet: Packet, source: Source
    ) -> set[Ternary] | None:
        self._effort.begin()
        walk = NftTraversal(table, self._family, self._situation, self._effort)
        match walk.tree(chain.name, packet):
            case Leaf(Dnat(), sent):
                return {self._masquerades(sent, source)}
            case _:
                return None
