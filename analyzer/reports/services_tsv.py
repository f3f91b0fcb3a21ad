"""``services`` for other programs: a line an endpoint, tabs between, no matter how many there are.

Columns: ServicePort, protocol, frontend, endpoint, node, lower and upper bound of the share of new
flows to the frontend, and where these come from: a pod, or outside where the frontend is no
ClusterIP, with the network if the frontend's rules tell such apart. An exact share has one of the
same in both bounds. Shares are ``numerator/2**exponent`` in hexadecimal and decimal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from analyzer.kubeproxy.view import Endpoint, FrontendKind, Route, ServicePort, Source
from analyzer.model.addresses import Network
from analyzer.model.cluster import Cluster
from analyzer.model.probability import Bounds, Dyadic
from analyzer.model.text import printable
from analyzer.reports.answers import ServicesAnswer

#: Of routes, joined, that are written at a time.
_LINES = 64
#: Of a line: what stands before the endpoint, the endpoint, what stands behind.
_PARTS = 3
_HEADINGS = ("service", "protocol", "frontend", "endpoint", "node", "lower", "upper", "from")


def render(answer: ServicesAnswer) -> Iterator[str]:
    """Give the lines piece by piece, headings first."""
    lines = ["\t".join(_HEADINGS) + "\n"]
    writer = _Writer(answer.cluster)
    for service in answer.services:
        lines += writer.routes(service)
        if len(lines) > _LINES:
            yield "".join(lines)
            lines.clear()
    yield "".join(lines)


class _Writer:
    """Writes each list of shares once: most Services have one of the same few."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        # By identity; the answer keeps the objects alive.
        self._shares: dict[tuple[int, int, Network | None], tuple[Sequence[Bounds], list[str]]] = {}

    def routes(self, service: ServicePort) -> Iterator[str]:
        """Give the lines of each route, joined, which takes less memory."""
        name = _cell(service.name.text)
        for route in self._routes(service):
            frontend = route.frontend
            endpoints, draws = route.columns()
            tails = self._tails(draws, route)
            if self._cluster.places:
                nodes = [self._node(share.endpoint) for share in route.shares]
                tails = [f"\t{node}{tail[1:]}" for node, tail in zip(nodes, tails, strict=True)]
            # Three parts a line: to join them at once takes half the time.
            parts = [f"{name}\t{service.protocol}\t{frontend.kind.value} {frontend}\t"]
            parts *= _PARTS * len(endpoints)
            parts[1::_PARTS] = endpoints
            parts[2::_PARTS] = tails
            yield "".join(parts)

    @staticmethod
    def _routes(service: ServicePort) -> Iterable[Route]:
        inside, routes = FrontendKind.CLUSTER_IP, service.routes_from(Source.POD)
        if not [each for each in service.frontends if each.kind is not inside]:
            return routes
        from_outside = service.routes_from(Source.EXTERNAL)
        return [
            *[route for route in routes if route.frontend.kind is inside],
            *[route for route in from_outside if route.frontend.kind is not inside],
        ]

    def _node(self, endpoint: Endpoint) -> str:
        return _cell(self._cluster.placement(endpoint.address).node or "")

    def _tails(self, draws: Sequence[Bounds], route: Route) -> list[str]:
        key = id(draws), id(route.source), route.network
        found = self._shares.get(key)
        if found is None:
            source = route.source.value if route.network is None else str(route.network)
            # The list is kept, so that no other gets its identity.
            texts = [f"\t\t{_bounds(share)}\t{source}\n" for share in draws]
            found = self._shares[key] = draws, texts
        return found[1]


def _bounds(bounds: Bounds) -> str:
    return f"{_share(bounds.lower)}\t{_share(bounds.upper)}"


def _share(share: Dyadic) -> str:
    return f"{share.numerator:#x}/2**{share.exponent}"


def _cell(text: str) -> str:
    """Return text that no spreadsheet takes for a formula."""
    shown = printable(text)
    return f"'{shown}" if shown[:1] in {"=", "+", "-", "@"} else shown
