"""Where a client is: how its flows to each Service end, at each node that may handle them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial

from analyzer.clients.responses import (
    RESPONSES,
    Ended,
    FateOf,
    FlowResponse,
    Lot,
    counted,
    lot_of,
    mixed,
    of_responses,
)
from analyzer.clients.target import ClientTarget
from analyzer.failure.hairpin_loss import sent_by
from analyzer.failure.loss import service_loss
from analyzer.failure.models import Dead
from analyzer.failure.route_loss import route_loss
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.routes.narrowest import narrowest
from analyzer.kubeproxy.view import (
    Endpoint,
    Frontend,
    FrontendKind,
    Route,
    ServicePort,
    Source,
    View,
)
from analyzer.model.addresses import Address, Network, network_of
from analyzer.model.endings import Endings, EndKind
from analyzer.model.ternary import Ternary
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_DNS_PORT: Final = 53
_PODS: Final = frozenset({Source.POD, Source.POD_ELSEWHERE})
#: Of the frontends of a Service, a client calls that of the first of these kinds.
_INSIDE: Final = (
    FrontendKind.CLUSTER_IP,
    FrontendKind.NODE_PORT,
    FrontendKind.LOAD_BALANCER_IP,
    FrontendKind.EXTERNAL_IP,
    FrontendKind.HOST_PORT,
)
_OUTSIDE: Final = (
    FrontendKind.NODE_PORT,
    FrontendKind.LOAD_BALANCER_IP,
    FrontendKind.EXTERNAL_IP,
    FrontendKind.CLUSTER_IP,
    FrontendKind.HOST_PORT,
)


@value(kw_only=True)
class EntryNode:
    """A node that a client's flows enter at.

    Attributes:
        chance: that a new flow enters there.
        view: its Services; None if nothing is known of its rules.
        fate: of all flows to it, if the node itself is dead; None if it is alive.
    """

    node: str | None
    chance: Fraction
    view: View | None
    fate: FlowResponse | None = None


def _unknown(_: ServicePort) -> None:
    return None


def _passes(_: ServicePort, __: Endpoint) -> None:
    return None


@value(kw_only=True)
class World:
    """Everything that decides how a client's flows end.

    Attributes:
        entries: the nodes that take them; one, unless a balancer draws.
        source: where they come from, as the nodes see it.
        client: their address; None: any that the rules do not single out.
        fate_of: what dead endpoints do.
        ready: returns the endpoints of a ServicePort that the API lists as ready, whatever the
            rules of a node draw; None if that is not known.
        direct: returns how rules of the node end flows to an endpoint itself; None: they pass.
    """

    entries: tuple[EntryNode, ...]
    dead: Dead
    fate_of: FateOf
    source: Source
    client: Address | None = None
    ready: Callable[[ServicePort], tuple[Endpoint, ...] | None] = _unknown
    direct: Callable[[ServicePort, Endpoint], Ended | None] = _passes

    @property
    def view(self) -> View:
        """The Services of the first node where they are known."""
        return next(each.view for each in self.entries if each.view is not None)

    def services(self) -> Sequence[ServicePort]:
        """Return the ServicePorts that a client can reach from its node."""
        of = None if self.client is None else self.client.version
        return [
            each
            for each in self.view.services
            if of in {None, each.version} and self._route(each) is not None
        ]

    def may_connect(self, service: ServicePort) -> bool:
        """Return whether a client may connect by TCP to a ServicePort that a dump lacks."""
        of = None if self.client is None else self.client.version
        return service.protocol in {"tcp", ""} and (of is None or service.version in {None, of})

    def target(self, service: ServicePort) -> ClientTarget:
        """Return what a client's flows to a ServicePort are drawn among."""
        found = [None if e.view is None else _same(e.view.services, service) for e in self.entries]
        return self._target(service, found)

    def targets(self, services: Sequence[ServicePort]) -> list[ClientTarget]:
        """Return the same of each."""
        found = [_every_same(each, services) for each in self.entries]
        return [self._target(each, [of[at] for of in found]) for at, each in enumerate(services)]

    def _target(
        self,
        service: ServicePort,
        found: Sequence[ServicePort | None],
        address: Address | None = None,
    ) -> ClientTarget:
        lots = [
            (each.chance, self._lot(each, same, address))
            for each, same in zip(self.entries, found, strict=True)
        ]
        return ClientTarget(
            name=f"{service.name.text}/{service.protocol}/{service.version}",
            lot=lots[0][1] if len(lots) == 1 else mixed(lots),
            affine=self._affine(service),
        )

    def _affine(self, service: ServicePort) -> Ternary:
        if service.affinity is None:
            return Ternary.FALSE
        # A balancer's next flow may come to another node; and the xt_recent list of an endpoint
        # holds 100 addresses (reports/affinity.py).
        if len(self.entries) > 1 or self.view.mode is not ProxyMode.NFTABLES:
            return Ternary.UNKNOWN
        return Ternary.TRUE

    def _lot(
        self, entry: EntryNode, same: ServicePort | None, address: Address | None = None
    ) -> Lot:
        if entry.fate is not None:
            return of_responses({entry.fate})
        route = None if same is None else self._route(same, address)
        if same is None or route is None or route.frontend in same.unfilled:
            return of_responses(RESPONSES)
        return self._lot_on(same, route)

    def _lot_on(self, service: ServicePort, route: Route) -> Lot:
        refusal = dict(service.refusals).get(route.frontend)
        if any(end.how != refusal for end, _ in route.astray if end.kind is EndKind.REFUSED):
            refusal = None  # rules of other programs come first
        return lot_of(route_loss(route, self.dead), self.dead, self.fate_of, refusal)

    def route(self, service: ServicePort) -> Route:
        """Return the route of a client's flows to a ServicePort of `services`."""
        found = self._route(service)
        assert found is not None
        return found

    def _route(self, service: ServicePort, address: Address | None = None) -> Route | None:
        """Return the route that a client takes, to `address` if it is given."""
        balanced = len(self.entries) > 1
        order = _OUTSIDE if self.source is Source.EXTERNAL else _INSIDE
        routes = [*service.every_route(self.source)]
        if address is not None:
            routes = [r for r in routes if r.frontend.address == address]
        if balanced:
            routes = [r for r in routes if r.frontend.kind is FrontendKind.NODE_PORT]
        found = min(self._own(routes), key=lambda r: order.index(r.frontend.kind), default=None)
        if found is None or self.client is None:
            return found
        return sent_by(self.client, service, found)

    def _own(self, routes: Sequence[Route]) -> Sequence[Route]:
        """Return the routes of the client; without an address, those of no network, if any."""
        client = self.client
        if client is None:
            return [r for r in routes if r.network is None] or routes
        by_frontend: dict[Frontend, list[Route]] = {}
        for route in routes:
            by_frontend.setdefault(route.frontend, []).append(route)
        found = (narrowest(each, client) for each in by_frontend.values())
        return [route for route in found if route is not None]

    def singled_out(
        self, service: ServicePort, address: Address | None = None
    ) -> tuple[Network, ...]:
        """Return the networks whose clients have another result, by rules on their addresses.

        So do endpoints that lose their own flows. A client with an address is judged by that.
        """
        found: dict[Network, None] = {}
        if self.client is not None:
            return ()
        for entry in self.entries:
            same = None if entry.view is None else _same(entry.view.services, service)
            own = None if same is None else self._route(same, address)
            if same is None or own is None:
                continue
            if self.source in _PODS:
                found |= dict.fromkeys(_odd_hairpins(same, own))
            lot = self._lot_on(same, own)
            for route in same.every_route(self.source):
                of_others = route.frontend == own.frontend and route is not own
                if of_others and self._lot_on(same, route) != lot:
                    found |= dict.fromkeys(route.networks)
        return tuple(found)

    def lost(self, services: Sequence[ServicePort]) -> list[tuple[Fraction, Fraction]]:
        """Return of each the share of new flows that a client may lose, and one singled out."""
        found = [(Fraction(0), Fraction(0))] * len(services)
        for entry in self.entries:
            for at, same in enumerate(_every_same(entry, services)):
                own, most = self._lost(entry, same)
                found[at] = found[at][0] + entry.chance * own, found[at][1] + entry.chance * most
        return found

    def _lost(self, entry: EntryNode, same: ServicePort | None) -> tuple[Fraction, Fraction]:
        route = None if same is None else self._route(same)
        if entry.fate is not None or same is None or route is None:
            return Fraction(1), Fraction(1)
        if route.frontend in same.unfilled:
            return Fraction(1), Fraction(1)
        own = most = route_loss(route, self.dead).loss.upper
        if self.client is None:
            sources = {self.source, *((Source.HAIRPIN,) if self.source in _PODS else ())}
            for each in service_loss(same, self.dead).routes:
                if each.route.frontend == route.frontend and each.route.source in sources:
                    most = max(most, each.loss.upper)
        return own.as_fraction(), most.as_fraction()

    def is_stopped(self, service: ServicePort, address: Address | None = None) -> bool:
        """Return whether rules of the node itself may drop or reject flows to its endpoints."""
        route = self._route(service, address)
        return route is not None and bool(route.losses())

    def pods(
        self, service: ServicePort, *, walks: bool = True
    ) -> tuple[Mapping[FlowResponse, int], Mapping[FlowResponse, int]]:
        """Return for each fate how many ready endpoints certainly have it, and how many may.

        If it is not known which are ready, those are taken that the rules send flows to. Without
        `walks` rules are taken to end no flow to an endpoint itself.
        """
        ready = self.ready(service)
        endpoints = service.endpoints if ready is None else ready
        ended = partial(self.direct if walks else _passes, service)
        return counted(endpoints, self.dead, self.fate_of, ended)

    def name_server(self, address: Address) -> ClientTarget:
        """Return how look-ups at an address end; not known unless it is a Service's."""
        service = dns_at(self.view.services, address)
        if service is None:
            return ClientTarget(name=f"{address}", lot=of_responses(RESPONSES))
        found = [None if e.view is None else _same(e.view.services, service) for e in self.entries]
        return self._target(service, found, address)


def _odd_hairpins(service: ServicePort, route: Route) -> Iterator[Network]:
    """Yield the endpoints whose flows end differently where they are sent back to them."""
    lost = _losses(route)
    for hairpin in service.every_route(Source.HAIRPIN):
        if hairpin.frontend == route.frontend:
            for endpoint, endings in _losses(hairpin).items():
                address = endpoint.address
                if lost.get(endpoint, ()) != endings:
                    yield network_of(address.version, int(address), address.max_prefixlen)


def _losses(route: Route) -> Mapping[Endpoint, Endings]:
    endpoints, _ = route.draws()
    return dict(zip(endpoints, route.losses() or [()] * len(endpoints), strict=True))


def dns_at(services: Iterable[ServicePort], address: Address) -> ServicePort | None:
    """Return the ServicePort that receives queries to an address."""
    for each in services:
        asked = ((f.address, f.port) for f in each.frontends)
        if each.protocol == "udp" and (address, _DNS_PORT) in asked:
            return each
    return None


def cluster_dns(services: Iterable[ServicePort]) -> tuple[ServicePort, Address] | None:
    """Return the cluster's DNS Service and its address: kube-dns by name, or the only one."""
    found = [
        (each, frontend.address)
        for each in services
        for frontend in each.frontends
        if each.protocol == "udp"
        and frontend.kind is FrontendKind.CLUSTER_IP
        and frontend.port == _DNS_PORT
        and frontend.address is not None
    ]
    named = [each for each in found if each[0].name.service == "kube-dns"]
    if named:
        return named[0]
    return found[0] if len(found) == 1 else None


def _every_same(entry: EntryNode, services: Sequence[ServicePort]) -> list[ServicePort | None]:
    """Return each as the node has it, which takes one look at all that it has."""
    every = () if entry.view is None else entry.view.services
    same = {(s.name, s.protocol, s.version): s for s in reversed(every)}
    return [same.get((each.name, each.protocol, each.version)) for each in services]


def _same(services: Iterable[ServicePort], wanted: ServicePort) -> ServicePort | None:
    key = wanted.name, wanted.protocol
    found = [each for each in services if (each.name, each.protocol) == key]
    return next((each for each in found if each.version == wanted.version), None)
