"""ServicePorts as a dump shows them, the same for every mode and version of kube-proxy."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence

from analyzer.kubeproxy.names import ServiceName
from analyzer.model.addresses import IPV4, Address, Network
from analyzer.model.diagnostics import Diagnostic
from analyzer.model.endings import Endings, EndKind
from analyzer.model.probability import NEVER, Bounds, Dyadic
from analyzer.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass


@enum.unique
class FrontendKind(enum.Enum):
    """How a Service is reached; of a HostPort, how one pod is."""

    CLUSTER_IP = "ClusterIP"
    NODE_PORT = "NodePort"
    EXTERNAL_IP = "ExternalIP"
    LOAD_BALANCER_IP = "LoadBalancerIP"
    HOST_PORT = "HostPort"


@enum.unique
class Source(enum.Enum):
    """Where a new flow comes from, seen from the node whose rules these are.

    A hairpin flow comes from the very endpoint that it is sent to: its route tells, for each
    endpoint, the share of its own flows that come back to it.
    """

    POD = "pod"
    POD_ELSEWHERE = "pod-elsewhere"
    NODE = "node"
    EXTERNAL = "external"
    HAIRPIN = "hairpin"


@enum.unique
class FrontendState(enum.Enum):
    """Whether a frontend leads to endpoints.

    ASTRAY: no new flow comes to one, and not for want of endpoints, as far as the dump tells.
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

    def __str__(self) -> str:
        host = _host(self.address)
        return host if self.port is None else f"{host}:{self.port}"


def _host(address: Address) -> str:
    return str(address) if address.version == IPV4 else f"[{address}]"


@value
class Frontend:
    """An address and port of a Service; no address: any address of the node.

    A port of None is one that the dump has lost.
    """

    kind: FrontendKind
    address: Address | None
    port: int | None

    def __str__(self) -> str:
        host = "*" if self.address is None else _host(self.address)
        return f"{host}:{'?' if self.port is None else self.port}"


@value
class Share:
    """How many of the new flows on a route DNAT sends to one endpoint.

    Attributes:
        share: of all new flows on the route, endpoints or not.
        masquerade: whether such a flow gets a source address of the node; None: not known, or
            not the same for all of them.
        lost: of these flows, those that rules behind the DNAT drop or reject, and which do.
    """

    endpoint: Endpoint
    share: Bounds
    masquerade: bool | None
    lost: Endings = ()


@value
class Route:
    """A frontend seen from one kind of source, with the exact distribution over endpoints.

    Attributes:
        unresolved: the share, at most, of new flows of which nothing can be said.
        network: of the sources, just those in it; None: those in no network that the rules of
            the frontend tell apart, as ``loadBalancerSourceRanges`` do.
        astray: the flows that are sent to no endpoint, as far as it is known how they end.
        also: other networks whose sources fare the same, as those of a set that rules match on.
    """

    frontend: Frontend
    source: Source
    shares: Sequence[Share]
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
        quick = getattr(self.shares, "columns", None)  # of shares that are not made yet
        if quick is not None:
            found: tuple[Sequence[str], Sequence[Bounds]] = quick()
            return found
        return [str(s.endpoint) for s in self.shares], [s.share for s in self.shares]

    def draws(self) -> tuple[Sequence[Endpoint], Sequence[Bounds]]:
        """Return the endpoints and the share of each, in the order of `columns`."""
        quick = getattr(self.shares, "draws", None)
        if quick is not None:
            found: tuple[Sequence[Endpoint], Sequence[Bounds]] = quick()
            return found
        return [s.endpoint for s in self.shares], [s.share for s in self.shares]

    def masquerades(self) -> Sequence[bool | None]:
        """Return of each share whether its flows are masqueraded, in the order of `columns`."""
        quick = getattr(self.shares, "masquerades", None)
        if quick is not None:
            found: Sequence[bool | None] = quick()
            return found
        return tuple([s.masquerade for s in self.shares])

    def losses(self) -> Sequence[Endings]:
        """Return of each share how its flows are lost behind the DNAT, in the order of `columns`.

        Empty where none of any share is.
        """
        quick = getattr(self.shares, "losses", None)
        if quick is not None:
            found: Sequence[Endings] = quick()
            return found
        lost = tuple([s.lost for s in self.shares])
        return lost if any(lost) else ()

    @property
    def is_exact(self) -> bool:
        """Whether nothing unknown can change a share."""
        return not self.unresolved and all(share.is_exact for share in self.columns()[1])


def each_network(routes: Iterable[Route]) -> Iterator[Route]:
    """Give routes of a single network each, or of none, for what is told network by network."""
    for route in routes:
        if not route.also:
            yield route
        else:
            yield from (replace(route, network=each, also=()) for each in route.networks)


def open_as(hairpin: Route, others: Iterable[Route]) -> Route:
    """Return a hairpin route that leaves open what others do: unknown endpoints may return too."""
    unresolved = max([hairpin.unresolved, *[route.unresolved for route in others]])
    return replace(hairpin, unresolved=unresolved) if unresolved else hairpin


@value(kw_only=True)
class ServicePort:
    """One port of one Service, at the node whose dump it is.

    Attributes:
        routes: the first one, if there is a ClusterIP, is from a pod to that.
        affinity: seconds of ``sessionAffinity: ClientIP``, None without.
        refusals: what a frontend without endpoints answers with: reject or drop.
        unfilled: frontends whose chain is there and has no rule, as in the middle of a sync.
    """

    name: ServiceName
    protocol: str
    frontends: tuple[Frontend, ...]
    routes: Sequence[Route]
    affinity: int | None = None
    refusals: tuple[tuple[Frontend, str], ...] = ()
    unfilled: tuple[Frontend, ...] = ()

    @property
    def version(self) -> int | None:
        """The IP version, 4 or 6; None where nothing of it tells."""
        frontends = (f.address.version for f in self.frontends if f.address is not None)
        found: int | None = next(frontends, None)
        return found or next((e.address.version for e in self.endpoints), None)

    def state(self, frontend: Frontend) -> FrontendState:
        """Tell whether `frontend` leads to endpoints, for a new flow from anywhere."""
        routes = [r for r in self.differing_routes() if r.frontend == frontend]
        if dict(self.refusals).get(frontend) is not None:
            # With a local policy flows from the cluster itself may have endpoints all the same.
            some = any(len(r.shares) for r in routes)
            return FrontendState.ENDPOINTS if some else FrontendState.NO_ENDPOINTS
        # Routes of plain rows have one and the same list.
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
        quick = getattr(self.routes, "from_source", None)
        if quick is not None:
            found: Iterable[Route] = quick(source)
            return found
        return [route for route in self.routes if route.source is source]

    def differing_routes(self) -> Sequence[Route]:
        """Return the routes without those that are like another but for where flows come from.

        Of routes to a frontend that all have the same draws one stands for all of them; what it
        says of source, network and masquerade is then its own. Where any differ, all are there.
        """
        quick = getattr(self.routes, "alike", None)
        found: Sequence[Route] | None = None if quick is None else quick()
        return self.routes if found is None else found

    def every_route(self, source: Source) -> Iterator[Route]:
        """Give the routes from one kind of source, those of refused frontends to nowhere."""
        found: dict[Frontend, list[Route]] = {frontend: [] for frontend in self.frontends}
        for route in self.routes_from(source):
            found[route.frontend].append(route)
        for frontend, routes in found.items():
            if not routes and source is not Source.HAIRPIN:  # without endpoints nobody is one
                routes.append(Route(frontend, source, (), NEVER))
            yield from routes

    @property
    def cluster_route(self) -> Route | None:
        """The way of a new flow from a pod of the cluster to the ClusterIP."""
        for route in self.routes_from(Source.POD):
            if route.frontend.kind is FrontendKind.CLUSTER_IP:
                return route
        return None

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """All endpoints of all routes, each once."""
        # Routes of plain rows have one and the same list.
        lists = {id(each): each for each in [r.draws()[0] for r in self.routes]}
        return tuple(dict.fromkeys(e for each in lists.values() for e in each))


@value(kw_only=True)
class View:
    """All ServicePorts of a dump.

    Attributes:
        mode: of kube-proxy: iptables, nftables, ipvs, userspace or none.
        node: whose dump it is, where that was said.
        pod_source: the address that stands for a pod of the cluster in the routes from a pod.
        cut: the IP versions of which there may be more ServicePorts, since the dump ends before
            the table does that holds them.
        unseen: why the dump shows no Services, and what to run instead; empty where it does.
        left_out: names of Services of which a rule was not understood, or chains where none says.
        unled: names of Services that have chains and no rule that leads there.
    """

    services: tuple[ServicePort, ...]
    mode: str
    node: str | None
    pod_source: Address | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    cut: tuple[int, ...] = ()
    unseen: str = ""
    left_out: tuple[str, ...] = ()
    unled: tuple[str, ...] = ()

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """All endpoints of all Services, each once."""
        return tuple(dict.fromkeys(e for s in self.services for e in s.endpoints))
