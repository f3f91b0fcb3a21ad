"""Routes of all sources of a kind, and of endpoints that come back to themselves.

Theory of operation
===================

A chain of an endpoint asks whether the endpoint itself is the source, and marks its flows if so. As
a rule they are then sent back to it. Where they may leave the chain instead, as with a rule that
nobody can read, they go on to other endpoints with the mark. So each endpoint is a source of its
own; but as nothing before the flows leave matches on marks, they go the ways of any other source
that rules do not tell apart from it, and only the masquerade of endpoints that are met behind that
chain may be another. So one walk tells it for all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from analyzer.kubeproxy.chain_order import ChainOrder
from analyzer.kubeproxy.flows import FlowWalks, agreed
from analyzer.kubeproxy.sources import Marked
from analyzer.kubeproxy.view import Endpoint, Frontend, Route, Share, Source
from analyzer.model.addresses import Address, Network
from analyzer.model.packet import ALL_BITS, Packet
from analyzer.model.probability import ALWAYS, NEVER, Bounds
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace, value
from analyzer.semantics.tree import Leaf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Endpoints that are looked at to tell what comes back to each of them, where walks for all of
#: them do not tell it: of a Service with n, that many by n are walked for themselves.
_MOST_WALKED: Final = 10_000
_TOO_MANY_HAIRPINS: Final = (
    "many endpoints have chains of their own that kube-proxy does not write: what flows of theirs "
    "come back to them is a range"
)
#: Shares of flows that endpoints send, each of which is told for itself: with more of one Service,
#: as of more than 100 endpoints that all may send flows to each other, those of none are.
_MOST_TOLD: Final = 10_000
_TOO_MANY_MARKED: Final = (
    "flows of many endpoints may leave chains of their own marked, for other endpoints: whether "
    "such flows are masqueraded is not told"
)


@value(kw_only=True)
class Told:
    """What tells sources apart on the way of a frontend's flows.

    Attributes:
        networks: of the classes of sources, those that are marked left aside.
        marked: the sources whose flows are marked, by address.
        order: that of the chains that the flows come to.
        stand_ins: of each class, by the smallest network that it is in, an address that is not
            marked.
    """

    networks: frozenset[Network] = frozenset()
    marked: Mapping[Address, Marked] = MappingProxyType({})
    order: ChainOrder = ChainOrder({}, ())
    stand_ins: Mapping[Network | None, Address] = MappingProxyType({})

    def standing_in(self, addresses: Iterable[Address | None]) -> Told:
        """Return the same, with more addresses that stand for their classes."""
        if not self.marked:
            return self
        more = {
            self.class_of(each): each
            for each in addresses
            if each is not None and each not in self.marked
        }
        return replace(self, stand_ins={**more, **self.stand_ins})

    @property
    def are_all_read(self) -> bool:
        """Whether all chains that mark a source do nothing that nobody can read."""
        return all(each.bits is not None for each in self.marked.values())

    def class_of(self, address: Address) -> Network | None:
        """Return the smallest network that holds an address."""
        holding = [network for network in self.networks if address in network]
        return max(holding, key=lambda network: network.prefixlen, default=None)


class _Walked:
    """A route that was walked, and the ends of the ways to each of its endpoints."""

    def __init__(self, route: Route, leaves: Mapping[Endpoint, Sequence[Leaf]]) -> None:
        self.route = route
        self.leaves = leaves
        self.shares = {share.endpoint: share for share in route.shares}
        #: The shares of flows that are marked on their way, by the bits that may be.
        self.marked: dict[int, Sequence[Share]] = {}
        #: The chains that send flows to each endpoint.
        self.chains: Sequence[int] | None = None

    @property
    def says_nothing(self) -> bool:
        """Whether anything may become of the flows."""
        return not self.route.shares and self.route.unresolved == ALWAYS


class RouteWalks(FlowWalks, ABC):
    """Walks to the routes of a frontend; subclasses know the rules."""

    def routes(
        self,
        frontend: Frontend,
        protocol: str,
        source: Source,
        parts: Sequence[tuple[Network | None, Address | None]],
        told: Told,
    ) -> Iterator[Route]:
        """Give the route from each part of a kind of source, as `SourceParts` gives them.

        Where too many of them are marked, those of a class have one route.
        """
        sizes = Counter(told.class_of(each) for _, each in parts if each and each in told.marked)
        classes: dict[Network | None, _Walked | None] = {}
        for network, address in parts:
            if address is None:
                yield self.route(frontend, protocol, source, address, network)
                continue
            marked, class_ = told.marked.get(address), told.class_of(address)
            if marked is not None and class_ in classes:
                usual = classes[class_]
                if usual is None:
                    continue
                came = self._came(frontend, protocol, source, address)
                route = self._of_marked(usual, marked, came, told.order)
                if route is not None:
                    yield route
                    continue
            walked = self._explored(frontend, protocol, source, address, network)
            folded = sizes[class_] * len(walked.shares) > _MOST_TOLD and told.are_all_read
            if marked is None:
                classes[class_] = None if folded else walked
            yield self._folded(walked.route) if folded and marked is None else walked.route

    def hairpin(
        self, frontend: Frontend, protocol: str, endpoints: Sequence[Endpoint], told: Told
    ) -> Route:
        """Return, for each endpoint, the share of its own flows that come back to it.

        Endpoints of one class of sources have the same ways, but for the KUBE-SEP chain that asks
        for the endpoint.
        """
        ways: dict[object, _Walked] = {}
        found: list[Share] = []
        unresolved = NEVER
        left = _MOST_WALKED // max(len(endpoints), 1)
        for endpoint in endpoints:
            address = endpoint.address
            source = Source.NODE if address in self._own else Source.HAIRPIN
            marked, walked = told.marked.get(address), address
            if marked is not None and marked.bits is not None and source is Source.HAIRPIN:
                walked = told.stand_ins.get(told.class_of(address), address)
            # Whose address it is only the KUBE-SEP chains ask, besides those networks; but one
            # that is marked on its way stands for itself alone.
            alone = None if marked is None else walked
            kind = source, alone, frozenset(n for n in told.networks if address in n)
            if kind not in ways:
                ways[kind] = self._explored(frontend, protocol, source, walked)
            usual = ways[kind]
            share, open_ = usual.shares.get(endpoint), usual.route.unresolved
            if share is not None:
                came = self._came(frontend, protocol, source, address)
                others = None if walked == address else marked
                answers = self._returned(usual, endpoint, came, others, told.order)
                if answers is not None:
                    share = replace(share, masquerade=agreed(answers))
                elif left:
                    left -= 1
                    route = self.route(frontend, protocol, source, address)
                    share = next((s for s in route.shares if s.endpoint == endpoint), None)
                    open_ = route.unresolved
                else:
                    self._effort.note(_TOO_MANY_HAIRPINS)
                    share, open_ = Share(endpoint, Bounds(NEVER, ALWAYS), None), ALWAYS
            unresolved = max(unresolved, open_)
            found += [] if share is None else [share]
        return Route(frontend, Source.HAIRPIN, tuple(found), unresolved)

    def _came(
        self, frontend: Frontend, protocol: str, source: Source, address: Address | None
    ) -> Packet:
        return self._flow(self._packet(source, address), frontend, protocol)

    def _explored(
        self,
        frontend: Frontend,
        protocol: str,
        source: Source,
        address: Address | None,
        network: Network | None = None,
    ) -> _Walked:
        leaves: dict[Endpoint, list[Leaf]] = {}
        tree = self.tree(frontend, protocol, source, address)
        return _Walked(self._route(tree, frontend, source, network, leaves), leaves)

    # --- sources whose flows are marked ---

    def _folded(self, route: Route) -> Route:
        """Return a route that holds for marked sources too."""
        self._effort.note(_TOO_MANY_MARKED)
        shares = tuple([replace(share, masquerade=None) for share in route.shares])
        return replace(route, shares=shares)

    def _of_marked(
        self, usual: _Walked, marked: Marked, came: Packet, order: ChainOrder
    ) -> Route | None:
        """Return the route of a source whose flows are marked, by that of its class.

        `came` is the packet that it sends. None: that has to be walked.
        """
        if usual.says_nothing:
            return replace(usual.route, network=marked.network)
        if marked.bits is None:
            return None
        if usual.chains is None:
            usual.chains = [
                order.chains(map(self._chain_of, usual.leaves[share.endpoint]))
                for share in usual.route.shares
            ]
        if marked.bits not in usual.marked:
            usual.marked[marked.bits] = [
                self._changed(share, usual, marked.bits) for share in usual.route.shares
            ]
        met = order.after(marked.chain) | order.chains([marked.chain])
        ways = zip(usual.route.shares, usual.marked[marked.bits], usual.chains, strict=True)
        shares = [changed if met & chains else share for share, changed, chains in ways]
        for at, share in enumerate(usual.route.shares):
            if share.endpoint.address == marked.address:
                answers = self._returned(usual, share.endpoint, came, marked, order)
                if answers is None:
                    return None
                shares[at] = replace(share, masquerade=agreed(answers))
        return replace(usual.route, shares=tuple(shares), network=marked.network)

    def _changed(self, share: Share, usual: _Walked, bits: int) -> Share:
        """Return a share of flows of which some are marked on their way."""
        if share.masquerade is None:
            return share
        source, ends = usual.route.source, usual.leaves[share.endpoint]
        answers = {self._masquerades(leaf.packet, source) for leaf in ends}
        answers |= {self._masquerades(_marked(leaf.packet, bits), source) for leaf in ends}
        return replace(share, masquerade=agreed(answers))

    def _returned(
        self,
        usual: _Walked,
        endpoint: Endpoint,
        came: Packet,
        marked: Marked | None,
        order: ChainOrder,
    ) -> set[Ternary] | None:
        """Return whether flows that come as `came` are masqueraded when they come to `endpoint`.

        They go the ways of others, which were walked. None: that has to be walked.
        """
        source = usual.route.source
        found: set[Ternary] = set()
        for leaf in usual.leaves[endpoint]:
            answers = self._returns(came, source, leaf)
            if answers is None:
                return None
            found |= answers
            chain = self._chain_of(leaf)
            if marked is not None and chain != marked.chain:
                bits = ALL_BITS if marked.bits is None else marked.bits
                if order.after(marked.chain) & order.chains([chain]):
                    sent = replace(leaf.packet, source=came.source, from_node=came.from_node)
                    found.add(self._masquerades(_marked(sent, bits), source))
        return found

    def _returns(self, came: Packet, source: Source, leaf: Leaf) -> set[Ternary] | None:
        """Return whether flows are masqueraded that come as `came` and go the way to `leaf`.

        None: that has to be walked.
        """
        if leaf.packet.source == came.source:
            return {self._masquerades(leaf.packet, source)}
        return None

    @abstractmethod
    def _chain_of(self, leaf: Leaf) -> str | None:
        """Return the chain whose rule ends a way; None: that is not known."""


def _marked(packet: Packet, bits: int) -> Packet:
    """Return a packet of which some bits of the mark may be set, or not."""
    return replace(packet, mark=packet.mark.blurred(bits))
