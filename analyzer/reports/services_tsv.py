"""``services`` for other programs: a line an endpoint, tabs between, no matter how many there are.

Columns: ServicePort, protocol, frontend, endpoint, node, lower and upper bound of the share of new
flows from a pod to the frontend (a frontend without ClusterIP: from outside). An exact share has
one of the same in both. Shares are ``numerator/2**exponent`` in hexadecimal and decimal.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.kubeproxy.view import Endpoint, FrontendKind, ServicePort, Source
from analyzer.model.cluster import Cluster
from analyzer.model.probability import Bounds, Dyadic
from analyzer.model.text import printable
from analyzer.reports.answers import ServicesAnswer

_HEADINGS = ("service", "protocol", "frontend", "endpoint", "node", "lower", "upper")


def render(answer: ServicesAnswer) -> str:
    """Return the lines, headings first."""
    lines = ["\t".join(_HEADINGS)]
    writer = _Writer(answer.cluster)
    for service in answer.services:
        lines += writer.lines(service)
    return "\n".join(lines) + "\n"


class _Writer:
    """Writes each share once: they are mostly the same few objects."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        # By identity; the answer keeps the objects alive.
        self._shares: dict[int, str] = {}

    def lines(self, service: ServicePort) -> Iterator[str]:
        name = _cell(service.name.text)
        for route in service.routes:
            kind = route.frontend.kind
            wanted = Source.POD if kind is FrontendKind.CLUSTER_IP else Source.EXTERNAL
            if route.source is not wanted:
                continue
            head = f"{name}\t{service.protocol}\t{kind.value} {route.frontend}\t"
            if self._cluster.placements:
                nodes = [self._node(share.endpoint) for share in route.shares]
            else:
                nodes = [""] * len(route.shares)
            for (endpoint, share), node in zip(route.texts(), nodes, strict=True):
                yield f"{head}{endpoint}\t{node}\t{self._share(share)}"

    def _node(self, endpoint: Endpoint) -> str:
        return _cell(self._cluster.placement(endpoint.address).node or "")

    def _share(self, share: Bounds) -> str:
        found = self._shares.get(id(share))
        if found is None:
            found = self._shares[id(share)] = _bounds(share)
        return found


def _bounds(bounds: Bounds) -> str:
    return f"{_share(bounds.lower)}\t{_share(bounds.upper)}"


def _share(share: Dyadic) -> str:
    return f"{share.numerator:#x}/2**{share.exponent}"


def _cell(text: str) -> str:
    """Return text that no spreadsheet takes for a formula."""
    shown = printable(text)
    return f"'{shown}" if shown[:1] in {"=", "+", "-", "@"} else shown
