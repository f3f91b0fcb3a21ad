"""Flows of plain endpoints of nft to themselves, of which a few are evaluated.

The marks that they have after DNAT are the same for all endpoints of Services of one kind that no
rule before tells apart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from analyzer.kubeproxy.routes.explored import known
from analyzer.kubeproxy.routes.flows import FlowWalks
from analyzer.kubeproxy.rows.plain_shares import MasqueradeAndLoss
from analyzer.kubeproxy.view import Endpoint, Frontend, Source
from analyzer.model.addresses import Address
from analyzer.model.intervals import Intervals, Membership
from analyzer.model.packet import Mark
from analyzer.semantics.onward import Onward


class PlainHairpins:
    """The hairpin flows of one dump; uses `walks` for what does not follow from rows.

    `own` are the node's addresses, if known; `asked` returns the sources that the rules before the
    chains of Services of one kind distinguish.
    """

    def __init__(
        self,
        walks: FlowWalks,
        own: Collection[Address],
        asked: Callable[[tuple[object, ...]], Iterable[Intervals]],
    ) -> None:
        self._walks = walks
        self._own = frozenset(own)
        self._asked = asked
        self._memberships: dict[tuple[object, ...], Membership] = {}
        self._marks: dict[tuple[object, ...], frozenset[Mark]] = {}

    def after_dnat(
        self, kind: tuple[object, ...], frontend: Frontend, protocol: str, endpoint: Endpoint
    ) -> MasqueradeAndLoss:
        """Return what happens to an endpoint's flows to itself, by a frontend of a kind."""
        address = endpoint.address
        marks = self.marks(kind, frontend, protocol, endpoint)
        way = self._source(address), protocol, endpoint, marks, address
        told = masquerade_and_loss(self._walks.after_dnat.to(*way))
        lost = self._walks.hairpins.lost(address, told.masquerade, told.lost)
        return told if lost is told.lost else MasqueradeAndLoss(told.masquerade, lost)

    def marks(
        self, kind: tuple[object, ...], frontend: Frontend, protocol: str, endpoint: Endpoint
    ) -> frozenset[Mark]:
        """Return the marks that such flows may have after DNAT."""
        address = endpoint.address
        if kind not in self._memberships:
            self._memberships[kind] = Membership(sorted(self._asked(kind)))
        source = self._source(address)
        side = self._walks.after_dnat.side_of(address) if source is Source.HAIRPIN else None
        key = kind, source, side, self._memberships[kind].of(int(address))
        found = self._marks.get(key)
        if found is None:
            way = frontend, protocol, source, address, side
            found = self._marks[key] = self._walks.explored(*way).marks(endpoint, address)
        return found

    def _source(self, address: Address) -> Source:
        # A flow from its own address was made by the node.
        return Source.NODE if self._own and address in self._own else Source.HAIRPIN


def masquerade_and_loss(onward: Onward) -> MasqueradeAndLoss:
    """Return a result as shares have it."""
    return MasqueradeAndLoss(known(onward.masquerade), onward.lost)
