"""ServicePorts as they are at every node, from API objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from analyzer.kubeproxy.generate.config import ProxyConfig
from analyzer.kubeproxy.generate.specs import ServicePortSpec
from analyzer.kubeproxy.names import service_name
from analyzer.kubeproxy.predict.lists import DrawnEndpoints, DrawnShares, ListedShares
from analyzer.kubeproxy.predict.reaches import Reaches, UsedEndpoints
from analyzer.kubeproxy.predict.relations import NodeRelations
from analyzer.kubeproxy.predict.templates import (
    From,
    RouteTemplate,
    Shape,
    ShapeRequest,
    Templates,
    frontend_at,
    kind_of,
)
from analyzer.kubeproxy.predict.walked import companion, walked
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.view import Route, ServicePort, Source, each_network
from analyzer.model.addresses import Address, Network
from analyzer.model.cluster import Cluster
from analyzer.model.probability import NEVER
from analyzer.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.kubeproxy.predict.reaches import Endpoints


@value
class At:
    """A ServicePort at some nodes, at all of which it is the same."""

    service: ServicePort
    nodes: frozenset[str]


@value(kw_only=True)
class EveryNode:
    """A ServicePort at every node.

    Attributes:
        at: the ServicePort, at the nodes where it is the same; no node is there twice.
    """

    at: tuple[At, ...]

    @property
    def service(self) -> ServicePort:
        """The ServicePort as it is at most nodes: its name and frontends are those of all."""
        return max(self.at, key=lambda each: len(each.nodes)).service

    @property
    def together(self) -> ServicePort:
        """The ServicePort with the routes that it has at any node, alike ones once."""
        if len(self.at) == 1:
            return self.at[0].service
        routes: dict[object, Route] = {}
        for route in (route for each in self.at for route in each.service.routes):
            printed, _ = route.columns()
            of = route.frontend, route.source, route.network, route.also
            routes.setdefault((*of, tuple(printed), route.unresolved, route.astray), route)
        return replace(self.service, routes=tuple(routes.values()))

    @property
    def nodes(self) -> frozenset[str]:
        """The nodes that have it."""
        return frozenset().union(*(each.nodes for each in self.at))

    def at_node(self, node: str) -> ServicePort | None:
        """Return the ServicePort at one node; None: it is not there."""
        return next((each.service for each in self.at if node in each.nodes), None)


@value
class _Class:
    """Nodes at which a ServicePort is the same; if odd, its own rules must be evaluated."""

    reached: UsedEndpoints
    shape: Shape
    first: str
    nodes: frozenset[str]
    is_odd: bool


def every_node(
    services: Iterable[ServicePortSpec],
    proxies: Mapping[str, ProxyConfig],
    mode: ProxyMode,
    cluster: Cluster,
    advance: Callable[[int, int | None], None] | None = None,
) -> tuple[EveryNode, ...]:
    """Return ServicePorts of one family at all nodes of `proxies`."""
    return tuple(_Predicted(proxies, mode, cluster).of(list(services), advance))


class _Predicted:
    """Predicts the ServicePorts of one family."""

    def __init__(
        self, proxies: Mapping[str, ProxyConfig], mode: ProxyMode, cluster: Cluster
    ) -> None:
        self._proxies = dict(proxies)
        self._mode = mode
        self._cluster = cluster
        self._every = frozenset(proxies)
        self._relations = NodeRelations(self._proxies, cluster)
        self._beside: ServicePortSpec | None = None
        self._draws = DrawnShares(mode, next(iter(proxies.values())).layout.digits)

    def of(
        self,
        services: Sequence[ServicePortSpec],
        advance: Callable[[int, int | None], None] | None,
    ) -> Iterator[EveryNode]:
        """Yield the ServicePorts at every node."""
        classes = [tuple(self._classes(each)) for each in services]
        asked: dict[Shape, ShapeRequest] = {}
        for service, own in zip(services, classes, strict=True):
            for each in own:
                if each.is_odd:
                    continue
                asked.setdefault(
                    each.shape, ShapeRequest(shape=each.shape, service=service, node=each.first)
                )
        self._beside = companion(services)
        every = Templates(self._mode, self._proxies, self._cluster, self._beside)
        templates = every.of(asked.values())
        for service, own in zip(services, classes, strict=True):
            lists: dict[object, DrawnEndpoints] = {}
            yield EveryNode(
                at=tuple(
                    At(self._service(service, each, templates.get(each.shape), lists), each.nodes)
                    for each in own
                )
            )
            if advance is not None:
                advance(1, len(services))

    # --- classes of nodes ----------------------------------------------------

    def _classes(self, service: ServicePortSpec) -> Iterator[_Class]:
        """Yield the classes of nodes at which a ServicePort is the same."""
        reaches = Reaches(service, next(iter(self._proxies.values())).layout)
        related = self._relations.of(service)
        if related.is_same_everywhere and reaches.is_same_everywhere:
            yield self._class(service, reaches, self._every, related.relation)
            return
        looked_at: Iterable[str] = self._proxies
        if related.is_same_everywhere and not reaches.asks_zones:
            # Most nodes have neither endpoints nor hints: they are handled together.
            looked_at = [name for name in reaches.nodes if name in self._proxies]
            rest = self._every.difference(looked_at)
            if rest:
                yield self._class(service, reaches, rest, related.relation)
        found: dict[object, list[str]] = {}
        for name in looked_at:
            reached = reaches.at(self._proxies[name])
            key = id(reached.cluster), id(reached.local), related.at(name)
            found.setdefault(key, []).append(name)
        for names in found.values():
            yield self._class(service, reaches, frozenset(names), related.at(names[0]))

    def _class(
        self,
        service: ServicePortSpec,
        reaches: Reaches,
        nodes: frozenset[str],
        relation: object,
    ) -> _Class:
        first = self._first(nodes)
        reached = reaches.at(self._proxies[first])
        shape = Shape(
            kind=kind_of(service),
            relation=relation,
            cluster=bool(reached.cluster),
            local=bool(reached.local),
            any_at_all=reaches.any_at_all,
        )
        return _Class(reached, shape, first, nodes, reaches.is_odd)

    def _first(self, nodes: frozenset[str]) -> str:
        """Return the first of these nodes, in the order of the objects."""
        if len(nodes) == 1:
            return next(iter(nodes))
        return next(name for name in self._proxies if name in nodes)

    # --- ServicePorts --------------------------------------------------------

    def _service(
        self,
        spec: ServicePortSpec,
        of: _Class,
        template: RouteTemplate | None,
        lists: dict[object, DrawnEndpoints],
    ) -> ServicePort:
        if template is None or of.is_odd:
            return self._walked(spec, of.first)
        frontends = {place: frontend_at(place, spec) for place in template.frontends}
        reached = of.reached
        chosen = {
            From.CLUSTER: self._listed(reached.cluster, lists),
            From.LOCAL: self._listed(reached.local, lists),
            From.NOTHING: self._listed((), lists),
            From.PERHAPS_CLUSTER: self._listed(reached.cluster, lists, certain=False),
            From.PERHAPS_LOCAL: self._listed(reached.local, lists, certain=False),
        }
        hosts = self._relations.hosts
        routes = [
            Route(
                frontends[each.place],
                each.source,
                ListedShares(chosen[each.drawn], of.first, each.masquerade, hosts),
                NEVER,
                each.network,
                each.astray,
            )
            for each in template.routes
        ]
        if any(route.network is not None for route in routes):
            routes = [*_told_apart(routes, self._relations.own[of.first])]
        return ServicePort(
            name=service_name(spec.name),
            protocol=spec.protocol,
            frontends=tuple(frontends.values()),
            routes=tuple(routes),
            affinity=spec.affinity if reached.cluster or reached.local else None,
            refusals=tuple((frontends[place], how) for place, how in template.refusals),
        )

    def _listed(
        self, endpoints: Endpoints, lists: dict[object, DrawnEndpoints], *, certain: bool = True
    ) -> DrawnEndpoints:
        key = id(endpoints), certain
        if key not in lists:
            draws = self._draws.of(len(endpoints), certain=certain)
            lists[key] = DrawnEndpoints(endpoints, draws)
        return lists[key]

    def _walked(self, spec: ServicePortSpec, node: str) -> ServicePort:
        """Return a ServicePort from an evaluation of its own rules."""
        view = walked([spec], self._proxies[node], self._mode, self._cluster, self._beside)
        named = [s for s in view.services if s.protocol == spec.protocol]
        found = next((s for s in named if s.name.text == spec.name), None)
        if found is None:  # the rules do not show it, so nothing is known of it
            found = ServicePort(
                name=service_name(spec.name), protocol=spec.protocol, frontends=(), routes=()
            )
        hosts = self._relations.hosts
        every = each_network(found.routes)
        routes = [each for each in every if each.source is not Source.HAIRPIN]
        # As in `ListedShares`.
        told = [
            replace(
                route,
                shares=tuple(
                    replace(each, masquerade=None) if each.endpoint.address in hosts else each
                    for each in route.shares
                ),
            )
            for route in routes
        ]
        return replace(found, routes=tuple(told))


def _told_apart(routes: Sequence[Route], own: Sequence[Address]) -> Iterator[Route]:
    """Yield the routes, except from networks with the same results as the sources around them.

    Rules may distinguish a network in order to send its flows to the endpoints of all nodes, which
    may be just those of this node.
    """
    for route in routes:
        around = None if route.network is None else _around(route, routes)
        if around is not None:
            shares, others = route.shares, around.shares
            assert isinstance(shares, ListedShares)
            assert isinstance(others, ListedShares)
            if shares.is_like(others, own):
                continue
        yield route


def _around(route: Route, routes: Iterable[Route]) -> Route | None:
    """Return the route of the smallest network around that of another, or of none."""
    found: Route | None = None
    for each in routes:
        if (each.frontend, each.source) != (route.frontend, route.source) or each is route:
            continue
        if each.network is None:
            found = found or each
        elif _is_within(route.network, each.network) and (
            found is None or found.network is None or _is_within(each.network, found.network)
        ):
            found = each
    return found


def _is_within(inner: Network | None, outer: Network) -> bool:
    if inner is None or inner.version != outer.version or inner == outer:
        return False
    return inner.prefixlen > outer.prefixlen and inner.network_address in outer
