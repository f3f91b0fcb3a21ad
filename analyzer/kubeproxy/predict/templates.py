"""Which list of endpoints each route of a ServicePort draws from, found by evaluating its shape.

Theory of operation: two ServicePorts that differ only in their endpoints have the same rules except
for names, addresses and numbers of endpoints. So of each shape one is generated with an endpoint at
the node and one elsewhere: rules for all endpoints draw one half each, rules for local ones the
first alone, and what is drawn identifies the list. A shape is what decides which rules there are:
the policies, the kinds and number of frontends, the source ranges, and which of the lists are empty
(`Shape`).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

from analyzer.kubeproxy.generate.config import ProxyConfig
from analyzer.kubeproxy.generate.specs import EndpointSpec, ServicePortSpec
from analyzer.kubeproxy.predict.walked import walked
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.view import Frontend, FrontendKind, Route, ServicePort, Source, each_network
from analyzer.model.addresses import Address, Network
from analyzer.model.cluster import Cluster
from analyzer.model.endings import Ending, Endings, summed
from analyzer.model.probability import ALWAYS, Dyadic
from analyzer.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

    #: A frontend: its apparent kind, its actual kind, and its position among those.
    FrontendPosition: TypeAlias = tuple[FrontendKind, FrontendKind, int]

_HALF: Final = Dyadic.of(1, 1)
_BOTH: Final = ("here", "elsewhere")
#: For endpoints if neither objects nor settings have a network of pods (RFC 2544).
_ANYWHERE: Final = {4: "198.18.0.0", 6: "2001:2::"}


@enum.unique
class From(enum.Enum):
    """The list that a route draws from; or the one that it may or may not draw from."""

    CLUSTER = "cluster"
    LOCAL = "local"
    NOTHING = "nothing"
    PERHAPS_CLUSTER = "cluster or nothing"
    PERHAPS_LOCAL = "local or nothing"


@value(kw_only=True)
class Shape:
    """What decides which rules a ServicePort has at a node.

    Attributes:
        kind: what the specification of the ServicePort decides.
        relation: what the addresses and networks of the node decide.
        cluster, local, any_at_all: whether it has endpoints of either list, and at any node.
    """

    kind: object
    relation: object
    cluster: bool
    local: bool
    any_at_all: bool


@value(kw_only=True)
class TemplateRoute:
    """A route of a shape.

    Attributes:
        masquerade: of flows to endpoints of the node, and to others.
        astray: the flows that are sent to no endpoint, without the rules that decide it: their
            text names the ServicePort that was evaluated.
    """

    place: FrontendPosition
    source: Source
    network: Network | None
    drawn: From
    masquerade: tuple[bool | None, bool | None]
    astray: Endings = ()


@value(kw_only=True)
class RouteTemplate:
    """The routes of a shape, except those of hairpins, and its refusals by frontend."""

    routes: tuple[TemplateRoute, ...]
    frontends: tuple[FrontendPosition, ...]
    refusals: tuple[tuple[FrontendPosition, str], ...]


def kind_of(service: ServicePortSpec) -> tuple[object, ...]:
    """Return what a ServicePort's specification decides of its rules, apart from endpoints."""
    return (
        service.protocol,
        bool(service.node_port),
        len(service.external_ips),
        len(service.load_balancer_ips),
        service.load_balancer_source_ranges,
        service.external_local,
        service.internal_local,
        service.affinity is not None,
        bool(service.health_check_node_port),
    )


@value(kw_only=True)
class ShapeRequest:
    """A shape to be evaluated, with a ServicePort of it and a node."""

    shape: Shape
    service: ServicePortSpec
    node: str


class Templates:
    """Evaluates shapes, those of one node together, and `beside` them a `companion`."""

    def __init__(
        self,
        mode: ProxyMode,
        proxies: dict[str, ProxyConfig],
        cluster: Cluster,
        beside: ServicePortSpec | None,
    ) -> None:
        self._mode = mode
        self._proxies = proxies
        self._cluster = cluster
        self._beside = beside

    def of(self, asked: Iterable[ShapeRequest]) -> dict[Shape, RouteTemplate | None]:
        """Return the template of each shape; None if it does not follow from an evaluation."""
        found: dict[Shape, RouteTemplate | None] = {}
        for node, batch in _batches(asked):
            proxy = self._proxies[node]
            here, there = self._two(proxy)
            given = [_with_endpoints(each, here, there) for each in batch]
            view = walked(given, proxy, self._mode, self._cluster, self._beside)
            seen = {(s.name.text, s.protocol): s for s in view.services}
            for each, spec in zip(batch, given, strict=True):
                service = seen.get((spec.name, spec.protocol))
                found[each.shape] = None if service is None else _template(service, spec)
        return found

    def _two(self, proxy: ProxyConfig) -> tuple[EndpointSpec, EndpointSpec]:
        """Return an endpoint at the node and one elsewhere, at addresses that pods may have."""
        from ipaddress import ip_address

        nodes = self._cluster.nodes
        mine = [n for n in nodes[proxy.node].pod_networks if n.version == proxy.family]
        others = [
            network
            for node in nodes.values()
            if node.name != proxy.node
            for network in node.pod_networks
            if network.version == proxy.family
        ]
        cidr = [proxy.cluster_cidr] if proxy.cluster_cidr is not None else []
        here: Address = ip_address(_ANYWHERE[proxy.family]) + 2
        there: Address = here + 1
        if mine or cidr:
            here = _first(mine or cidr, 2)
        if others or cidr:
            there = _first(others or cidr, 3)
        return (
            EndpointSpec(address=here, port=_PORT, node=proxy.node),
            EndpointSpec(address=there, port=_PORT),
        )


_PORT: Final = 8080
_CALLED_ALIKE: Final = {FrontendKind.EXTERNAL_IP: FrontendKind.LOAD_BALANCER_IP}


def _first(networks: Sequence[Network], offset: int) -> Address:
    network = networks[0]
    return network[min(offset, network.num_addresses - 1)]


def _batches(asked: Iterable[ShapeRequest]) -> Iterable[tuple[str, list[ShapeRequest]]]:
    """Return shapes that can be rules of one node together: no ServicePort is there twice."""
    batches: dict[tuple[str, int], list[ShapeRequest]] = {}
    taken: dict[tuple[str, str, str], int] = {}
    for each in asked:
        key = each.node, each.service.name, each.service.protocol
        at = taken[key] = taken.get(key, -1) + 1
        batches.setdefault((each.node, at), []).append(each)
    return [(node, batch) for (node, _), batch in batches.items()]


def _with_endpoints(
    asked: ShapeRequest, here: EndpointSpec, there: EndpointSpec
) -> ServicePortSpec:
    """Return a ServicePort of the shape whose endpoints identify its lists."""
    shape = asked.shape
    if not shape.any_at_all:
        endpoints: tuple[EndpointSpec, ...] = ()
    else:
        endpoints = (here, there) if shape.local or not _asks_local(asked.service) else (there,)
    return replace(asked.service, endpoints=endpoints)


def _asks_local(service: ServicePortSpec) -> bool:
    return service.internal_local or service.external_local


def _template(service: ServicePort, spec: ServicePortSpec) -> RouteTemplate | None:
    """Return what the routes of an evaluated ServicePort draw from; None if that is not plain."""
    places: dict[Frontend, FrontendPosition] = {}
    for frontend in service.frontends:
        place = place_of(frontend, spec)
        if place is None or service.unfilled:
            return None
        places[frontend] = place
    routes = []
    for route in each_network(service.routes):
        if route.source is Source.HAIRPIN:
            continue
        drawn = _drawn(route, spec)
        if drawn is None or route.losses():
            return None
        nodes = {e.address: e.node for e in spec.endpoints}
        endpoints, _ = route.draws()
        by_node = dict(zip((nodes[e.address] for e in endpoints), route.masquerades(), strict=True))
        elsewhere = by_node.get(None)
        here = next((m for node, m in by_node.items() if node is not None), elsewhere)
        routes.append(
            TemplateRoute(
                place=places[route.frontend],
                source=route.source,
                network=route.network,
                drawn=drawn,
                masquerade=(here, elsewhere if None in by_node else here),
                astray=summed((Ending(kind=e.kind, how=e.how), n) for e, n in route.astray),
            )
        )
    return RouteTemplate(
        routes=tuple(routes),
        frontends=tuple(places[frontend] for frontend in service.frontends),
        refusals=tuple((places[frontend], how) for frontend, how in service.refusals),
    )


def _drawn(route: Route, spec: ServicePortSpec) -> From | None:
    """Return which list a route draws from; None if that is not certain."""
    endpoints, shares = route.draws()
    if route.unresolved:
        return None
    if not endpoints:
        return From.NOTHING
    wanted = [e.address for e in spec.endpoints]
    addresses = [e.address for e in endpoints]
    certain = all(share.is_exact for share in shares)
    if not certain and any(share.lower for share in shares):
        return None
    whole = _HALF if len(addresses) == len(_BOTH) else ALWAYS
    if any(share.upper != whole for share in shares):
        return None
    if sorted(addresses) == sorted(wanted):
        return From.CLUSTER if certain else From.PERHAPS_CLUSTER
    if addresses == wanted[:1] and spec.endpoints[0].node is not None:
        return From.LOCAL if certain else From.PERHAPS_LOCAL
    return None


def place_of(frontend: Frontend, spec: ServicePortSpec) -> FrontendPosition | None:
    """Return a frontend's kind, and its position in the specification; None: it is not there.

    Rules of nftables mode do not distinguish load balancers' addresses from external IPs.
    """
    other = _CALLED_ALIKE.get(frontend.kind, frontend.kind)
    for kind in (frontend.kind, other):
        addresses = addresses_of(kind, spec)
        if frontend.address in addresses:
            return frontend.kind, kind, addresses.index(frontend.address)
    return None


def addresses_of(kind: FrontendKind, spec: ServicePortSpec) -> Sequence[Address | None]:
    """Return the addresses of all frontends of a kind."""
    match kind:
        case FrontendKind.CLUSTER_IP:
            return (spec.cluster_ip,)
        case FrontendKind.NODE_PORT:
            return (None,)
        case FrontendKind.EXTERNAL_IP:
            return spec.external_ips
        case FrontendKind.LOAD_BALANCER_IP:
            return spec.load_balancer_ips
        case FrontendKind.HOST_PORT:
            return ()  # the network plugin writes them; no Service has one


def frontend_at(place: FrontendPosition, spec: ServicePortSpec) -> Frontend:
    """Return the frontend of a ServicePort at a place."""
    called, kind, at = place
    port = spec.node_port if kind is FrontendKind.NODE_PORT else spec.port
    return Frontend(called, addresses_of(kind, spec)[at], port)
