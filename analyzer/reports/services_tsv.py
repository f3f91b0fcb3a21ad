"""``services`` as TSV: one line for each endpoint, however many there are.

Columns: ServicePort, protocol, frontend, endpoint, node, lower and upper bound of the share of new
flows to the frontend, where these come from, the seconds of session affinity, or nothing, and the
endpoint's pod where objects name it. Shares are decimal, the nearest number with 53 bits; an exact
share has the same in both bounds. Exact numerators, which for n endpoints take n**2
digits, are in JSON.

Every frontend has its lines for flows from every source: from ``any``, if all sources have the same
result, else for each group of sources that do, separated by commas: ``pod``, ``pod-elsewhere``,
``node``, ``external`` and ``hairpin``, or ``external in 192.0.2.0/24`` where rules distinguish
networks. A line without an endpoint is for the flows that no line above it has: its upper bound is
the greatest share whose outcome is unknown; if that is 0, and it is the only line of the group, the
flows reach no endpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.kubeproxy.view import Endpoint, Frontend, Route, ServicePort, Source
from analyzer.model.cluster import Cluster
from analyzer.model.probability import Bounds
from analyzer.reports.answers import ServicesAnswer
from analyzer.reports.route_networks import networks
from analyzer.reports.tsv import cell

#: Of routes, joined, that are written at a time.
_LINES = 64
#: Parts of a line: before the endpoint, the endpoint, after it.
_PARTS = 3
_HEADINGS = (
    "service",
    "protocol",
    "frontend",
    "endpoint",
    "node",
    "lower",
    "upper",
    "from",
    "affinity",
    "pod",
)
_ANY = "any"
_SOURCES = {source: source.value for source in Source}


def render(answer: ServicesAnswer) -> Iterator[str]:
    """Yield the lines piece by piece, header first."""
    lines = ["\t".join(_HEADINGS) + "\n"]
    writer = _Writer(answer.cluster)
    for service in answer.services:
        lines += writer.routes(service)
        if len(lines) > _LINES:
            yield "".join(lines)
            lines.clear()
    yield "".join(lines)


class _Alike:
    """Routes to one frontend that give the same endpoints the same shares."""

    __slots__ = ("draws", "endpoints", "routes", "unresolved")

    def __init__(self, route: Route, endpoints: Sequence[str], draws: Sequence[Bounds]) -> None:
        self.routes = [route]
        self.endpoints = endpoints
        self.draws = draws
        self.unresolved = route.unresolved

    def has(self, route: Route, endpoints: Sequence[str], draws: Sequence[Bounds]) -> bool:
        """Return whether a route has the same lines."""
        return (
            route.unresolved == self.unresolved
            and (*endpoints,) == (*self.endpoints,)
            and (*draws,) == (*self.draws,)
        )


class _Writer:
    """Writes each list of shares once: most Services have one of the same few."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._has_places = bool(cluster.places)
        # By identity; the lists are kept, so that no others get theirs.
        self._tails: dict[tuple[int, str], tuple[Sequence[Bounds], list[str]]] = {}

    def routes(self, service: ServicePort) -> Iterator[str]:
        """Yield the lines of each route, joined to save memory."""
        name = cell(service.name.text)
        for frontend, groups in _by_frontend(service.differing_routes()):
            head = f"{name}\t{service.protocol}\t{frontend.kind._value_} {frontend}\t"
            for group in groups:
                source = _ANY if len(groups) == 1 else ",".join(map(_source, group.routes))
                behind = f"{source}\t{'' if service.affinity is None else service.affinity}\t\n"
                yield self._lines(head, group, behind)
                if group.unresolved or not len(group.endpoints):
                    upper = float(group.unresolved)
                    yield f"{head}\t\t{0.0!r}\t{upper!r}\t{behind}"

    def _lines(self, head: str, group: _Alike, behind: str) -> str:
        tails = self._tails_of(group.draws, behind)
        if self._has_places:
            told = [self._told(share.endpoint) for share in group.routes[0].shares]
            tails = [
                f"\t{node}{tail[1:-1]}{pod}\n"
                for (node, pod), tail in zip(told, tails, strict=True)
            ]
        # Three parts a line: to join them at once takes half the time.
        parts = [head] * (_PARTS * len(group.endpoints))
        parts[1::_PARTS] = group.endpoints
        parts[2::_PARTS] = tails
        return "".join(parts)

    def _told(self, endpoint: Endpoint) -> tuple[str, str]:
        """Return node and pod of an endpoint, or nothing."""
        node = self._cluster.placement(endpoint.address).node or ""
        pod = self._cluster.pods.of(endpoint.address, endpoint.port) or ""
        return cell(node), cell(pod)

    def _tails_of(self, draws: Sequence[Bounds], behind: str) -> list[str]:
        key = id(draws), behind
        found = self._tails.get(key)
        if found is None:
            texts = [f"\t\t{_bounds(share)}\t{behind}" for share in draws]
            found = self._tails[key] = draws, texts
        return found[1]


def _by_frontend(routes: Sequence[Route]) -> list[tuple[Frontend, list[_Alike]]]:
    """Return the frontends, with the routes to each that are alike together."""
    if len(routes) == 1:
        return [(routes[0].frontend, [_Alike(routes[0], *routes[0].columns())])]
    found: list[tuple[Frontend, list[_Alike]]] = []
    frontend: Frontend | None = None
    groups: list[_Alike] = []
    for route in routes:
        endpoints, draws = route.columns()
        if route.frontend is not frontend:  # those of one stand together
            frontend = route.frontend
            groups = next((each for known, each in found if known == frontend), [])
            if not groups:
                found.append((frontend, groups))
        elif (
            (last := groups[-1]).draws is draws
            and last.endpoints is endpoints
            and last.unresolved is route.unresolved
        ):
            # As it is with plain rows; to compare them takes longer.
            last.routes.append(route)
            continue
        for group in groups:
            if group.has(route, endpoints, draws):
                group.routes.append(route)
                break
        else:
            groups.append(_Alike(route, endpoints, draws))
    return found


def _source(route: Route) -> str:
    source = _SOURCES[route.source]
    return source if route.network is None else f"{source} in {networks(route)}"


def _bounds(bounds: Bounds) -> str:
    lower = repr(float(bounds.lower))
    return f"{lower}\t{lower if bounds.is_exact else repr(float(bounds.upper))}"
