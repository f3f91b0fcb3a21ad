"""Services with plain elements and chains, for which only a few are evaluated.

What happens to a flow to a plain Service follows from the endpoints that its chain draws, and from
the mark that it has by then. The mark is the same for all Services for which the rules before
their chains have the same results (`nft_frame`); one of each such class is evaluated from each
kind of source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from analyzer.kubeproxy.dispatch.nft_frame import SurroundingRules
from analyzer.kubeproxy.fastpath.nft_hairpins import PlainHairpins, masquerade_and_loss
from analyzer.kubeproxy.fastpath.nft_hosts import PlainFlows, PlainHosts
from analyzer.kubeproxy.fastpath.nft_quiet import QuietServices
from analyzer.kubeproxy.fastpath.nft_same import SameForAll, any_of_them
from analyzer.kubeproxy.routes.explored import Explored
from analyzer.kubeproxy.routes.flows import FlowWalks
from analyzer.kubeproxy.routes.source_parts import SourceParts
from analyzer.kubeproxy.rows.nft import PlainChain
from analyzer.kubeproxy.rows.plain_shares import (
    Drawn,
    Marked,
    MasqueradeAndLoss,
    MasqueradeAndLossOf,
    PlainRoutes,
    PlainService,
    PlainShares,
    differing_parts,
)
from analyzer.kubeproxy.source_part import SourcePart
from analyzer.kubeproxy.view import Endpoint, Frontend, FrontendKind, Route, Source
from analyzer.model.addresses import Address, Network, address_to_text, host_text
from analyzer.model.intervals import Intervals, everything, one_each
from analyzer.model.packet import Mark, Packet
from analyzer.model.probability import NEVER, Bounds, numgen_weights
from analyzer.model.region import Region
from analyzer.model.value import replace, value
from analyzer.semantics.onward import asked_of_others

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

    #: Two Services with equal kinds have the same results.
    ServiceKind: TypeAlias = tuple[object, ...]

#: Most Services of a kind that turn out to be odd, until all of the kind count as odd.
_MOST_ODD: Final = 8
#: Most destinations that rules after nat may distinguish when their matches on sources are listed.
_FEW: Final = 16


@value(kw_only=True)
class PlainFrontend:
    """A plain frontend, and what its chain does."""

    frontend: Frontend
    protocol: str
    chain: PlainChain


@value
class _MarkedPart:
    """A source of the flows to a Service, and the marks that they have there.

    Attributes:
        marks: of flows that do not return to their endpoint.
        each_own: the same for each of the node's own addresses, if rules tell them apart: then it
            is not known which one is the source.
    """

    part: SourcePart
    marks: frozenset[Mark]
    each_own: tuple[_MarkedPart, ...] = ()

    @property
    def address(self) -> Address | None:
        """An address of the source, None: not known."""
        return self.part.address


@value
class _Walked:
    """The flows from one kind of source to one Service, which represents all of its kind.

    Attributes:
        asked: the sources whose flows reach endpoints in ways of their own.
        marks: those that flows may have that do not return to their endpoint.
    """

    ways: Explored
    drawn: Drawn
    asked: frozenset[Intervals]
    marks: frozenset[Mark]

    def marks_from(self, address: Address | None) -> frozenset[Mark] | None:
        """Return the marks of flows from an address; None: not the same for all endpoints."""
        # The chain of an endpoint marks flows that return to it.
        ends = (endpoint for endpoint in self.drawn.endpoints if endpoint.address != address)
        marks = {self.ways.marks(endpoint, address) for endpoint in ends}
        return marks.pop() if len(marks) == 1 else None


class PlainServices:
    """Makes the routes of plain Services; uses `walks` for what does not follow from rows.

    `before` are the rules around the chains of Services, `own` the node's addresses, if known;
    `parts` has the sources of each kind; `of_all` the endpoints of all plain Services, as written,
    and how many Services these are. The address that represents the sources of a route is added to
    `addresses`, if it is not the usual one.
    """

    def __init__(
        self,
        walks: FlowWalks,
        before: SurroundingRules,
        own: tuple[Address, ...],
        parts: SourceParts,
        addresses: dict[tuple[Frontend, str, Source, Network | None], Address],
        of_all: tuple[set[str], int],
    ) -> None:
        self._addresses = addresses
        self._walks = walks
        self._before = before
        self._own = frozenset(own)
        self._own_hosts = frozenset(map(host_text, own))
        self._parts = parts
        self._known: dict[tuple[ServiceKind, Source], _Walked] = {}
        self._ways: dict[
            tuple[ServiceKind, Source, frozenset[Intervals]], tuple[_MarkedPart, ...]
        ] = {}
        #: Kinds that have been evaluated from all sources, with the marks of flows from each.
        self._plain: dict[ServiceKind, Mapping[Source, frozenset[Mark]]] = {}
        self._odd: dict[ServiceKind, int] = {}
        self._hairpins = PlainHairpins(walks, own, self._asked_of)
        self._to_itself: dict[tuple[object, ...], MasqueradeAndLoss] = {}
        self._draws: dict[int, tuple[Bounds, ...]] = {}
        self._hosts = PlainHosts(walks.hairpins, own, of_all)
        self._quiet = QuietServices(walks, self._hairpins, self._hosts)
        self._same = SameForAll(walks, self._hosts)
        #: Of all Services so far, by kind and the port of their endpoints; one of those represents
        #: the flows of all.
        self._routes: dict[
            tuple[ServiceKind, int | None], tuple[PlainFlows, list[PlainRoutes]]
        ] = {}

    def routes(self, place: PlainFrontend) -> PlainRoutes | None:
        """Return the routes of a frontend, made when they are used; None: it is not plain."""
        if not self._before.is_plain:
            return None
        kind = self._kind(place)
        if kind is None:
            return None
        drawn = self._drawn(place.chain)
        marks = self._plain.get(kind)
        if marks is None:
            if any(self._walked(kind, source, place, drawn) is None for source in Source):
                return None
            marks = {source: self._known[kind, source].marks for source in Source}
            self._plain[kind] = marks
        asked = PlainFlows(kind, place.frontend, place.protocol, drawn, place.chain.hosts, marks)
        is_quiet = self._quiet.add(asked)
        routes = PlainRoutes(
            lambda source: self._made(kind, source, place, drawn, is_quiet), is_quiet
        )
        self._routes.setdefault((kind, place.chain.port), (asked, []))[1].append(routes)
        return routes

    def settle(self) -> None:
        """Evaluate what happens to flows after DNAT, before the routes are read.

        Of Services of one kind without losses, whose endpoints have one port, the first represents
        all, as far as the same happens to flows to all endpoints; else, what is masqueraded is
        evaluated for the endpoints of the others when it is used.
        """
        if self._routes:
            _ = self.asks_behind  # first: what is evaluated later may want more to be assumed
        for asked, (first, *others) in self._routes.values():
            first.settle()
            if not self._quiet.is_kind_quiet(asked):
                for routes in others:
                    if not routes.is_quiet:
                        routes.settle()

    def _kind(self, place: PlainFrontend) -> ServiceKind | None:
        address, port = place.frontend.address, place.frontend.port
        assert address is not None  # otherwise its rows are not plain
        text = address_to_text(address)
        answers = self._before.answers(
            text,
            int(address),
            lambda: Packet(protocol=place.protocol, destination=address, destination_port=port),
        )
        chain = place.chain
        marks = chain.marks
        own = None if marks is None else marks[:3] == (text, place.protocol, port)
        if answers is None or chain.protocol != place.protocol:
            return None
        # More is assumed of a ClusterIP than of other addresses.
        is_cluster_ip = place.frontend.kind is FrontendKind.CLUSTER_IP
        return (place.protocol, is_cluster_ip, own, marks and marks[3:], chain.marks_own, answers)

    def _drawn(self, chain: PlainChain) -> Drawn:
        number = len(chain.texts)
        draws = self._draws.get(number)
        if draws is None:
            draws = tuple([Bounds(weight, weight) for weight in numgen_weights(number)])
            self._draws[number] = draws
        return Drawn(None, Marked.NONE, chain.texts, draws)

    # --- sources ---

    def _walked(
        self, kind: ServiceKind, source: Source, place: PlainFrontend, drawn: Drawn
    ) -> _Walked | None:
        key = kind, source
        if key in self._known:
            return self._known[key]
        if self._odd.get(kind, 0) > _MOST_ODD:
            return None
        region = (
            self._endpoint_region(place) if source is Source.HAIRPIN else self._parts.region(source)
        )
        # If the sources' addresses are not known, rules may match on more of them than there are.
        every = region or Region(self._parts.version, (everything(self._parts.version),))
        ways = self._walks.explored(place.frontend, place.protocol, source, every)
        asked = frozenset(ways.asked_before(region))
        found = _Walked(ways, drawn, asked, self._all_marks(ways, drawn))
        parts = () if source is Source.HAIRPIN else self._parts.alike(source, asked)
        if (
            not self._is_drawn(ways, drawn)
            or not self._is_marked_only(ways, source)
            or any(found.marks_from(part.address) is None for part in parts)
        ):
            # Only this Service may be odd, for example because its only endpoint is the source
            # itself.
            self._odd[kind] = self._odd.get(kind, 0) + 1
            return None
        self._known[key] = found
        return found

    def _asked_of(self, kind: ServiceKind) -> set[Intervals]:
        return {each for source in Source for each in self._known[kind, source].asked}

    def _all_marks(self, ways: Explored, drawn: Drawn) -> frozenset[Mark]:
        return frozenset(m for endpoint in drawn.endpoints for m in ways.marks(endpoint, None))

    def _ways_of(
        self, kind: ServiceKind, source: Source, place: PlainFrontend, drawn: Drawn
    ) -> tuple[_MarkedPart, ...]:
        """Return the parts of a source with ways of their own to a Service's endpoints."""
        walked = self._known[kind, source]
        asked = walked.asked
        if self.asks_behind:
            asked |= self._asked_behind(source, place, walked.marks, drawn)
        key = kind, source, asked
        if key not in self._ways:
            parts = self._parts.alike(source, asked)
            marks = [(part, walked.marks_from(part.address)) for part in parts]
            # If the only endpoint is the source itself, the marks are those of all others.
            known = [_MarkedPart(part, walked.marks if m is None else m) for part, m in marks]
            if source is Source.NODE:
                known = [self._with_each_own(way, walked) for way in known]
            self._ways[key] = tuple(known)
        return self._ways[key]

    def _with_each_own(self, way: _MarkedPart, walked: _Walked) -> _MarkedPart:
        if way.address is not None:
            return way
        parts = [replace(way.part, address=each) for each in sorted(self._own, key=int)]
        return replace(way, each_own=tuple([_MarkedPart(part, walked.marks) for part in parts]))

    @cached_property
    def asks_behind(self) -> bool:
        """Whether rules after nat may distinguish sources, apart from the endpoint itself."""
        # Mostly one traversal tells it of all that come in.
        sources = (Source.POD, Source.POD_ELSEWHERE, Source.EXTERNAL, Source.NODE)
        every = (self._walks.asked_behind(source, _FEW) for source in sources)
        return any(asked is None or asked for asked in every)

    def _asked_behind(
        self, source: Source, place: PlainFrontend, marks: Iterable[Mark], drawn: Drawn
    ) -> set[Intervals]:
        """Return what rules after nat match on of the sources of flows to some endpoints."""
        found: set[Intervals] = set()
        protocol, has_own = place.protocol, self._has_own(place)
        for mark in marks:
            of_all = self._same.asked(source, protocol, mark, place.chain.port)
            if of_all is not None:
                found |= of_all
                if not has_own:
                    continue
            towards = self._walks.after_dnat.towards(source, protocol, mark)
            for endpoint in drawn.endpoints:
                number = int(endpoint.address)
                found |= asked_of_others(towards(number, endpoint.port), number)
        return found

    def _has_own(self, place: PlainFrontend) -> bool:
        """Return whether an endpoint of a Service is an address of the node itself."""
        return not self._own_hosts.isdisjoint(place.chain.hosts)

    def _endpoint_region(self, place: PlainFrontend) -> Region | None:
        """Return all addresses that an endpoint may have, except the node's own."""
        address = place.frontend.address
        assert address is not None  # otherwise its rows are not plain
        version = address.version
        own = one_each(int(a) for a in self._own if a.version == version)
        return Region.of(version, Region(version, (everything(version),)).without(own))

    def _is_drawn(self, walked: Explored, drawn: Drawn) -> bool:
        """Return whether flows from all sources are drawn like this."""
        wanted = list(zip(drawn.endpoints, drawn.draws, strict=True))
        return all(part == wanted for part in walked.exact())

    def _is_marked_only(self, walked: Explored, source: Source) -> bool:
        """Return whether the rules before changed nothing of the flows but their marks."""
        arrived = (packet for each in walked.endpoints for packet in walked.packets(each))
        return all(self._walks.packets.is_told_by_mark(packet, source) for packet in arrived)

    def _made(
        self,
        kind: ServiceKind,
        source: Source,
        place: PlainFrontend,
        drawn: Drawn,
        is_quiet: Callable[[], bool],
    ) -> Iterator[Route]:
        protocol = place.protocol
        if source is Source.HAIRPIN:
            way = kind, place.frontend, place.protocol

            def of_hairpin(protocol: str, endpoint: Endpoint) -> MasqueradeAndLoss:
                address = endpoint.address
                if address not in self._own:
                    marks = self._hairpins.marks(*way, endpoint)
                    found = self._same.to_itself(protocol, marks, endpoint)
                    if found is not None:
                        return found
                return self._hairpins.after_dnat(*way, endpoint)

            shares = PlainShares(drawn, protocol, of_hairpin, is_quiet)
            yield Route(place.frontend, source, shares, NEVER)
            return
        service = PlainService("", "", protocol, place.frontend.port or 0, "", Marked.NONE, drawn)
        ways = self._ways_of(kind, source, place, drawn)
        parts = [(way.part, self._after(source, way, place)) for way in ways]
        for part, after in differing_parts(service, parts):
            if part.network is not None and part.address is not None:
                to = place.frontend, protocol, source, part.network
                self._addresses[to] = part.address
            shares = PlainShares(drawn, protocol, after, is_quiet)
            yield Route(place.frontend, source, shares, NEVER, part.network, (), part.also)

    # --- after DNAT ---

    def _after(self, source: Source, way: _MarkedPart, place: PlainFrontend) -> MasqueradeAndLossOf:
        if way.each_own:
            return any_of_them([self._after(source, each, place) for each in way.each_own])
        chain, address = place.chain, way.address
        same = self._same.to(source, place.protocol, way.marks, chain.port, address)
        is_endpoint = address is None or host_text(address) in chain.hosts
        if same is not None and not is_endpoint and not self._has_own(place):
            return same

        def after(protocol: str, endpoint: Endpoint) -> MasqueradeAndLoss:
            if endpoint.address == way.address:
                return self._of_itself(source, place, endpoint)
            if same is not None and endpoint.address not in self._own:
                if address is not None:
                    return same
                found = self._same.from_any(source, protocol, way.marks, endpoint)
                if found is not None:
                    return found
            to = source, protocol, endpoint, way.marks, way.address
            return masquerade_and_loss(self._walks.after_dnat.to(*to))

        return after

    def _of_itself(
        self, source: Source, place: PlainFrontend, endpoint: Endpoint
    ) -> MasqueradeAndLoss:
        """Return the result for the endpoint that is the source itself."""
        key = source, place.protocol, place.frontend, endpoint
        if key not in self._to_itself:
            way = place.frontend, place.protocol, source
            alone = self._walks.explored(*way, endpoint.address)
            self._to_itself[key] = masquerade_and_loss(alone.onward(endpoint, endpoint.address))
        return self._to_itself[key]
