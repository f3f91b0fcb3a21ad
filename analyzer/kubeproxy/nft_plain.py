"""Services whose elements and chains are plain, told by walks of a few of them.

What becomes of a flow to a plain Service follows from the endpoints that its chain draws, and from
the mark that it has by then. The mark is the same for all Services of which the rules before their
chains ask alike (`nft_frame`); one of each such class is walked from each source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from analyzer.kubeproxy.flows import agreed
from analyzer.kubeproxy.nft_frame import Frame
from analyzer.kubeproxy.nft_rows import PlainChain
from analyzer.kubeproxy.nft_walks import NftWalks
from analyzer.kubeproxy.plain_shares import Drawn, Judge, PlainRoutes, PlainService, PlainShares
from analyzer.kubeproxy.route_walks import Told
from analyzer.kubeproxy.view import Endpoint, Frontend, Route, Source
from analyzer.model.addresses import Address, Network, network_from_text
from analyzer.model.packet import Mark, Packet
from analyzer.model.probability import NEVER, Bounds, numgen_weights
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

    #: What makes two Services fare alike.
    Kind: TypeAlias = tuple[object, ...]

#: Services of a kind that are walked in vain, until all of the kind are.
_MOST_ODD: Final = 8


@value(kw_only=True)
class PlainPlace:
    """A plain frontend: where it is, and what its chain does."""

    frontend: Frontend
    protocol: str
    chain: PlainChain


@value
class _Way:
    """A source of the flows to some kind of Services, and the marks that they have there.

    Attributes:
        address: of the source, None: not known.
        marks: of flows that do not come back to their endpoint.
    """

    network: Network | None
    address: Address | None
    marks: frozenset[Mark]


class PlainServices:
    """Makes the routes of plain Services; asks `walks` for what it does not know.

    `before` and `behind` are the rules around the chains of Services; `parts` gives the networks
    and addresses that stand for a source which rules part by networks; those of the rules around
    are `asked`.
    """

    def __init__(
        self,
        walks: NftWalks,
        before: Frame,
        behind: Frame,
        own: tuple[Address, ...],
        parts: Callable[
            [Source, frozenset[Network]], Sequence[tuple[Network | None, Address | None]]
        ],
        asked: frozenset[Network],
    ) -> None:
        self._walks = walks
        self._before = before
        self._behind = behind
        self._own = frozenset(own)
        self._parts = parts
        self._asked = asked
        self._ways: dict[tuple[Kind, Source], tuple[_Way, ...]] = {}
        self._odd: dict[Kind, int] = {}
        self._returning: dict[tuple[object, ...], bool | None] = {}
        self._masquerades: dict[tuple[object, ...], bool | None] = {}
        self._draws: dict[int, tuple[Bounds, ...]] = {}
        self._complete: dict[frozenset[Network], bool] = {}

    def routes(self, place: PlainPlace) -> Sequence[Route] | None:
        """Return the routes of a frontend, made when they are asked for; None: it is not plain."""
        if not self._before.is_plain or not self._behind.is_plain:
            return None
        kind = self._kind(place)
        if kind is None:
            return None
        drawn = self._drawn(place.chain)
        for source in Source:
            if source is not Source.HAIRPIN and self._ways_of(kind, source, place, drawn) is None:
                return None
        service = PlainService("", "", place.protocol, place.frontend.port or 0, "", None, drawn)
        return PlainRoutes(lambda source: self._made(kind, source, place, service))

    def _kind(self, place: PlainPlace) -> Kind | None:
        address, port = place.frontend.address, place.frontend.port
        answers = self._before.answers(
            str(address),
            lambda: Packet(protocol=place.protocol, destination=address, destination_port=port),
        )
        chain = place.chain
        marks = chain.marks
        own = None if marks is None else marks[:3] == (str(address), place.protocol, port)
        if answers is None or chain.protocol != place.protocol:
            return None
        return (place.protocol, own, marks and marks[3:], chain.marks_own, answers)

    def _drawn(self, chain: PlainChain) -> Drawn:
        number = len(chain.texts)
        draws = self._draws.get(number)
        if draws is None:
            draws = tuple([Bounds(weight, weight) for weight in numgen_weights(number)])
            self._draws[number] = draws
        return Drawn(None, "", chain.texts, draws)

    # --- sources ---

    def _ways_of(
        self, kind: Kind, source: Source, place: PlainPlace, drawn: Drawn
    ) -> tuple[_Way, ...] | None:
        key = kind, source
        if key in self._ways:
            return self._ways[key]
        if self._odd.get(kind, 0) > _MOST_ODD:
            return None
        found = [
            (network, address, self._marks(source, address, place, drawn))
            for network, address in self._parts(source, self._asked_of(place))
        ]
        known = tuple([_Way(n, a, marks) for n, a, marks in found if marks is not None])
        if len(known) < len(found):
            # It may be this one that is odd, as where the only endpoint is the source itself.
            self._odd[kind] = self._odd.get(kind, 0) + 1
            return None
        self._ways[key] = known
        return known

    def _marks(
        self, source: Source, address: Address | None, place: PlainPlace, drawn: Drawn
    ) -> frozenset[Mark] | None:
        """Return the marks of flows to a Service's endpoints; None: the walk is no plain one."""
        ends = self._walks.ends(place.frontend, place.protocol, source, address)
        wanted = list(zip(drawn.endpoints, drawn.draws, strict=True))
        if ends is None or [(e, share) for e, share, _ in ends] != wanted:
            return None
        # The chain of an endpoint marks what comes back to it.
        marks = {marks for endpoint, _, marks in ends if endpoint.address != address}
        return marks.pop() if len(marks) == 1 else None

    def _made(
        self, kind: Kind, source: Source, place: PlainPlace, service: PlainService
    ) -> Iterator[Route]:
        if source is Source.HAIRPIN:
            yield self._hairpin(kind, place, service)
            return
        for way in self._ways_of(kind, source, place, service.drawn) or ():
            judge = self._judge(source, way, place)
            yield Route(place.frontend, source, PlainShares(service, judge), NEVER, way.network)

    # --- masquerade ---

    def _judge(self, source: Source, way: _Way, place: PlainPlace) -> Judge:
        def judge(protocol: str, endpoint: Endpoint) -> bool | None:
            if endpoint.address == way.address:
                return self._walked(source, way, place, endpoint)
            answers = self._behind.answers(
                str(endpoint.address), lambda: _sent(way.address, protocol, endpoint)
            )
            is_own = endpoint.address in self._own or endpoint.address.is_loopback
            key = source, way.address, way.marks, protocol, is_own, answers
            if answers is None or key not in self._masquerades:
                sent = source, protocol, endpoint
                found = {self._walks.masquerades(*sent, mark, way.address) for mark in way.marks}
                self._masquerades[key] = agreed(found)
            return self._masquerades[key]

        return judge

    def _walked(
        self, source: Source, way: _Way, place: PlainPlace, endpoint: Endpoint
    ) -> bool | None:
        """Tell it of the endpoint that is the source itself."""
        key = source, way.address, place.protocol, place.frontend, endpoint
        if key not in self._masquerades:
            route = self._walks.route(place.frontend, place.protocol, source, way.address)
            for share in route.shares:
                if share.endpoint == endpoint:
                    self._masquerades[key] = share.masquerade
        return self._masquerades[key]

    def _hairpin(self, kind: Kind, place: PlainPlace, service: PlainService) -> Route:
        """Return the route of the endpoints' own flows.

        The sources that were walked stand for all that rules tell apart, endpoints included. So
        the shares are the same, and only the masquerade is to be found.
        """
        frontend, drawn, questions = place.frontend, service.drawn, self._asked_of(place)
        if not self._stands_for_all(questions):
            told = Told(networks=questions)
            return self._walks.hairpin(frontend, place.protocol, drawn.endpoints, told)

        def judge(protocol: str, endpoint: Endpoint) -> bool | None:
            address = endpoint.address
            asked = tuple([address in network for network in questions])
            behind = self._behind.answers(str(address), lambda: _sent(address, protocol, endpoint))
            key = kind, asked, address in self._own, behind
            if behind is None or key not in self._returning:
                told = Told(networks=questions)
                found = self._walks.hairpin(frontend, protocol, [endpoint], told)
                (share,) = found.shares
                self._returning[key] = share.masquerade
            return self._returning[key]

        return Route(frontend, Source.HAIRPIN, PlainShares(service, judge), NEVER)

    def _asked_of(self, place: PlainPlace) -> frozenset[Network]:
        """Return the networks that rules on the way of a frontend's flows ask for."""
        marks = place.chain.marks
        spared = None if marks is None else network_from_text(marks[3])
        return self._asked if spared is None else self._asked | {spared}

    def _stands_for_all(self, asked: frozenset[Network]) -> bool:
        """Tell whether a walked source lies in each set of sources that rules tell apart."""
        if asked not in self._complete:
            addresses = [
                address
                for source in Source
                if source is not Source.HAIRPIN
                for _, address in self._parts(source, asked)
                if address is not None
            ]
            inmost = {_inmost(address, asked) for address in addresses}
            self._complete[asked] = inmost.issuperset({None, *asked})
        return self._complete[asked]


def _inmost(address: Address, networks: Iterable[Network]) -> Network | None:
    """Return the smallest of `networks` that holds an address."""
    holding = [network for network in networks if address in network]
    return max(holding, key=lambda network: network.prefixlen, default=None)


def _sent(source: Address | None, protocol: str, endpoint: Endpoint) -> Packet:
    """Return a packet that was sent on to an endpoint, as far as rules behind ask for it."""
    return Packet(
        protocol=protocol,
        source=source,
        destination=endpoint.address,
        destination_port=endpoint.port,
        translated=True,
    )
