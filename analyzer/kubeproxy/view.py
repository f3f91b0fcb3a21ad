"""ServicePorts as a dump shows them, the same for every mode and version of kube-proxy."""

from __future__ import annotations

import enum
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence

from analyzer.kubeproxy.names import ServiceName
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.untold import JudgedInPart, Untold
from analyzer.model.addresses import Address, Network, host_text
from analyzer.model.diagnostics import Diagnostic
from analyzer.model.endings import Endings, EndKind
from analyzer.model.probability import NEVER, Bounds, Dyadic
from analyzer.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias, overload


@enum.unique
class FrontendKind(enum.Enum):
    """How a Service is reached; HostPort: how one pod is reached."""

    CLUSTER_IP = "ClusterIP"
    NODE_PORT = "NodePort"
    EXTERNAL_IP = "ExternalIP"
    LOAD_BALANCER_IP = "LoadBalancerIP"
    HOST_PORT = "HostPort"


@enum.unique
class Source(enum.Enum):
    """Where a new flow comes from, seen from the node that the rules are from.

    HAIRPIN: the endpoint that it is sent to; shares are of the endpoint's own flows.
    """

    POD = "pod"
    POD_ELSEWHERE = "pod-elsewhere"
    NODE = "node"
    EXTERNAL = "external"
    HAIRPIN = "hairpin"


@enum.unique
class FrontendState(enum.Enum):
    """Whether a frontend leads to endpoints.

    ASTRAY: no new flow reaches one, as far as known, and not for lack of endpoints.
    """

    ENDPOINTS = "endpoints"
    ASTRAY = "astray"
    NO_ENDPOINTS = "no-endpoints"
    UNKNOWN = "unknown"


@value
class Endpoint:
    """Where DNAT sends a flow; a port of None is the one that the flow had."""

    address: Address
    port: int | None

    def __hash__(self) -> int:
        # Of ipaddress, not public: much quicker than an address' own hash, and as good.
        return hash((self.address._ip, self.port))  # type: ignore[union-attr]  # noqa: SLF001  # above

    def __str__(self) -> str:
        host = host_text(self.address)
        return host if self.port is None else f"{host}:{self.port}"


@value
class Frontend:
    """An address and port of a Service; no address: any address of the node.

    A port of None is one that the dump has lost.
    """

    kind: FrontendKind
    address: Address | None
    port: int | None

    def __str__(self) -> str:
        host = "*" if self.address is None else host_text(self.address)
        return f"{host}:{'?' if self.port is None else self.port}"


@value
class Share:
    """The share of the new flows on a route that DNAT sends to one endpoint.

    Attributes:
        share: of all new flows on the route, endpoints or not.
        masquerade: whether such a flow gets a source address of the node; None: not known, or
            not the same for all of them.
        lost: of these flows, those that rules after DNAT drop or reject, and which rules do.
    """

    endpoint: Endpoint
    share: Bounds
    masquerade: bool | None
    lost: Endings = ()


class LazyShares(Sequence[Share]):
    """Shares of one route, each made when it is used; what is read of all of them is there."""

    __slots__ = ()

    @abstractmethod
    def columns(self) -> tuple[Sequence[str], Sequence[Bounds]]:
        """Return the endpoints as they are printed, and their shares, without making a `Share`."""

    @abstractmethod
    def draws(self) -> tuple[Sequence[Endpoint], Sequence[Bounds]]:
        """Return the endpoints and their shares, without making a `Share`."""

    @abstractmethod
    def masquerades(self) -> Sequence[bool | None]:
        """Return for each endpoint whether its flows are masqueraded, without making a `Share`."""

    @abstractmethod
    def losses(self) -> Sequence[Endings]:
        """Return for each endpoint how its flows are lost; empty if none of any are."""

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, index: int) -> Share: ...
        @overload
        def __getitem__(self, index: slice) -> Sequence[Share]: ...

    def __getitem__(self, index: int | slice) -> Share | Sequence[Share]:
        return tuple(self)[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


#: To tell these apart by what is a tuple takes a tenth of asking an abstract class.
RouteShares: TypeAlias = tuple[Share, ...] | LazyShares


@value
class Route:
    """A frontend seen from one kind of source, with the exact distribution over endpoints.

    Attributes:
        unresolved: the greatest share of new flows whose end is not known.
        network: only sources in it; None: those in no network that the rules distinguish.
        astray: the flows that are sent to no endpoint, as far as it is known how they end.
        also: other networks with the same result, for example those of a set that rules match on.
    """

    frontend: Frontend
    source: Source
    shares: RouteShares
    unresolved: Dyadic
    network: Network | None = None
    astray: Endings = ()
    also: tuple[Network, ...] = ()

    @property
    def networks(self) -> tuple[Network, ...]:
        """All networks whose sources it is of; none: of those in no network told apart."""
        return () if self.network is None else (self.network, *self.also)

    def columns(self) -> tuple[Sequence[str], Sequence[Bounds]]:
        """Return the endpoints as they are printed, and the share of each."""
        if isinstance(self.shares, tuple):
            return [str(s.endpoint) for s in self.shares], [s.share for s in self.shares]
        return self.shares.columns()

    def draws(self) -> tuple[Sequence[Endpoint], Sequence[Bounds]]:
        """Return the endpoints and the share of each, in the order of `columns`."""
        if isinstance(self.shares, tuple):
            return [s.endpoint for s in self.shares], [s.share for s in self.shares]
        return self.shares.draws()

    def masquerades(self) -> Sequence[bool | None]:
        """Return for each share whether its flows are masqueraded, in the order of `columns`."""
        if isinstance(self.shares, tuple):
            return tuple([s.masquerade for s in self.shares])
        return self.shares.masquerades()

    def losses(self) -> Sequence[Endings]:
        """Return for each share how its flows are lost after DNAT, in the order of `columns`.

        Empty if none of any share are.
        """
        if not isinstance(self.shares, tuple):
            return self.shares.losses()
        lost = tuple([s.lost for s in self.shares])
        return lost if any(lost) else ()

    @property
    def is_exact(self) -> bool:
        """Whether nothing unknown can change a share."""
        return not self.unresolved and all(share.is_exact for share in self.columns()[1])

    @property
    def is_certain(self) -> bool:
        """Whether nothing unknown can change a share, what is lost or what is masqueraded."""
        ends = (*self.astray, *(each for lost in self.losses() for each in lost))
        certain = self.is_exact and all(bounds.is_exact for _, bounds in ends)
        return certain and None not in self.masquerades()


class LazyRoutes(Sequence[Route]):
    """Routes of one ServicePort, each made when it is used; what takes less than all is there."""

    __slots__ = ()

    @abstractmethod
    def from_source(self, source: Source) -> Iterable[Route]:
        """Return the routes from one kind of source, without making the others."""

    @property
    @abstractmethod
    def is_quiet(self) -> bool:
        """Whether none of the flows is certainly or possibly lost after its DNAT."""

    @abstractmethod
    def alike(self) -> Sequence[Route] | None:
        """Return for each frontend one route of the draws of all; None: there are others too.

        It represents the others in all but source, network and masquerade.
        """

    @abstractmethod
    def class_of(self) -> Hashable:
        """Return a key of routes that differ only in frontend and endpoints; or None.

        Compared by identity: only valid as long as the dump's routes exist.
        """

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, index: int) -> Route: ...
        @overload
        def __getitem__(self, index: slice) -> Sequence[Route]: ...

    @abstractmethod
    def __getitem__(self, index: int | slice) -> Route | Sequence[Route]: ...


ServiceRoutes: TypeAlias = tuple[Route, ...] | LazyRoutes


def each_network(routes: Iterable[Route]) -> Iterator[Route]:
    """Yield routes of at most one network each, for answers network by network."""
    for route in routes:
        networks = route.networks if route.also else ()
        yield from [replace(route, network=each, also=()) for each in networks] or [route]


@value(kw_only=True)
class ServicePort:
    """One port of one Service, at the node that the dump is from.

    Attributes:
        routes: the first one, if there is a ClusterIP, is from a pod to that.
        affinity: seconds of ``sessionAffinity: ClientIP``, None without.
        refusals: how flows to a frontend without endpoints are refused: reject or drop.
        unfilled: frontends whose chain is there and has no rule, for example in the middle of a
            sync.
    """

    name: ServiceName
    protocol: str
    frontends: tuple[Frontend, ...]
    routes: ServiceRoutes
    affinity: int | None = None
    refusals: tuple[tuple[Frontend, str], ...] = ()
    unfilled: tuple[Frontend, ...] = ()

    @property
    def version(self) -> int | None:
        """The IP version, 4 or 6; None if it follows from nothing."""
        frontends = (f.address.version for f in self.frontends if f.address is not None)
        found: int | None = next(frontends, None)
        return found or next((e.address.version for e in self.endpoints), None)

    @property
    def is_host_port(self) -> bool:
        """Whether it is a hostPort, which belongs to a pod and to no Service."""
        return any(f.kind is FrontendKind.HOST_PORT for f in self.frontends)

    def state(self, frontend: Frontend) -> FrontendState:
        """Return whether `frontend` leads to endpoints, for a new flow from anywhere."""
        routes = [r for r in self.differing_routes() if r.frontend == frontend]
        if dict(self.refusals).get(frontend) is not None:
            # With a local policy, flows from the cluster itself may have endpoints all the same.
            some = any(len(r.shares) for r in routes)
            return FrontendState.ENDPOINTS if some else FrontendState.NO_ENDPOINTS
        # Routes of plain rows share one list object.
        lists = {id(each): each for each in [r.columns()[1] for r in routes]}
        known = not any(r.unresolved for r in routes) and all(
            share.is_exact for each in lists.values() for share in each
        )
        if frontend in self.unfilled or not known:
            return FrontendState.UNKNOWN
        if any(len(r.shares) for r in routes):
            return FrontendState.ENDPOINTS
        if any(end.kind is not EndKind.REFUSED for r in routes for end, _ in r.astray):
            return FrontendState.ASTRAY
        return FrontendState.NO_ENDPOINTS

    def routes_from(self, source: Source) -> Iterable[Route]:
        """Return the routes from one kind of source, without making the others."""
        if isinstance(self.routes, tuple):
            return [route for route in self.routes if route.source is source]
        return self.routes.from_source(source)

    def differing_routes(self) -> Sequence[Route]:
        """Return the routes without those that differ from another in nothing but their source.

        Of routes to a frontend that all have the same draws one represents all; its source, network
        and masquerade are then its own. If any differ, all are returned.
        """
        found = None if isinstance(self.routes, tuple) else self.routes.alike()
        return self.routes if found is None else found

    @property
    def is_quiet(self) -> bool:
        """Whether no flow is lost after its DNAT, as far as that is known without all routes."""
        return not isinstance(self.routes, tuple) and self.routes.is_quiet

    def every_route(self, source: Source) -> Iterator[Route]:
        """Yield the routes from one kind of source; of refused frontends, without shares."""
        found: dict[Frontend, list[Route]] = {frontend: [] for frontend in self.frontends}
        for route in self.routes_from(source):
            found[route.frontend].append(route)
        for frontend, routes in found.items():
            if not routes and source is not Source.HAIRPIN:  # there is no endpoint to send one
                routes.append(Route(frontend, source, (), NEVER))
            yield from routes

    @property
    def cluster_route(self) -> Route | None:
        """The route of a new flow from a pod of the cluster to the ClusterIP."""
        for route in self.routes_from(Source.POD):
            if route.frontend.kind is FrontendKind.CLUSTER_IP:
                return route
        return None

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """All endpoints of all routes, each once."""
        lists = {id(each): each for each in [r.draws()[0] for r in self.routes]}  # often shared
        return tuple(dict.fromkeys(e for each in lists.values() for e in each))


@value(kw_only=True)
class View:
    """All ServicePorts of a dump.

    Attributes:
        mode: of kube-proxy.
        node: the node that the dump is from, if known.
        pod_sources: of each IP version the address that represents a pod in routes from a pod.
        cut: the IP versions that may have more ServicePorts, since the dump ends early.
        untold: rules that were not evaluated, where flows may be dropped.
        unseen: why the dump shows no Services, and what to run instead; empty if it shows any.
        left_out: names of Services with a rule that was not understood, and chains without a name.
        unled: names of Services that have chains and no rule that jumps to them.
        in_part: Services of several nodes that are not evaluated at each, for other reasons.
    """

    services: tuple[ServicePort, ...]
    mode: ProxyMode
    node: str | None
    pod_sources: tuple[Address, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    cut: tuple[int, ...] = ()
    untold: tuple[Untold, ...] = ()
    unseen: str = ""
    left_out: tuple[str, ...] = ()
    unled: tuple[str, ...] = ()
    in_part: tuple[JudgedInPart, ...] = ()

    @property
    def lacks_some(self) -> bool:
        """Whether rules that matter are not in the dump, or not evaluated."""
        return bool(self.cut or self.untold)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """All endpoints of all Services, each once."""
        return tuple(dict.fromkeys(e for s in self.services for e in s.endpoints))
