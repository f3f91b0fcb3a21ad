"""ServicePorts on a few nodes, and what they lose by trying: an oracle for sums over nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from hypothesis import strategies as st

from analyzer.failure.incidence import Incidence, incidence
from analyzer.failure.loss import ServiceLoss, losses
from analyzer.failure.models import Dead
from analyzer.failure.places import EndpointPlaces
from analyzer.failure.ways import ways
from analyzer.kubeproxy.names import service_name
from analyzer.kubeproxy.view import (
    Endpoint,
    Frontend,
    FrontendKind,
    Route,
    ServicePort,
    Share,
    Source,
)
from analyzer.model.cluster import Cluster, Node, Placement
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic

NODES = ("n0", "n1", "n2", "n3", "n4")
ZONES = {"n0": "a", "n1": "a", "n2": "b", "n3": "b", "n4": None}
_ENDPOINTS = [Endpoint(IPv4Address("10.0.0.1") + number, 80) for number in range(10)]
_KINDS = (
    Frontend(FrontendKind.CLUSTER_IP, IPv4Address("10.96.0.1"), 80),
    Frontend(FrontendKind.NODE_PORT, None, 30_080),
)
_SOURCES = (Source.POD, Source.NODE, Source.EXTERNAL, Source.HAIRPIN)


@dataclass(frozen=True)
class Placed:
    """ServicePorts, and on which node each endpoint is."""

    services: tuple[ServicePort, ...]
    node_of: Mapping[Endpoint, str | None]

    @property
    def cluster(self) -> Cluster:
        return Cluster(
            {name: Node(name=name, zone=ZONES[name]) for name in NODES},
            {
                each.address: Placement(node, None if node is None else ZONES[node])
                for each, node in self.node_of.items()
            },
        )

    @property
    def nodes(self) -> Incidence:
        places = EndpointPlaces(self.cluster)
        found = [ways(each) for each in self.services]
        return incidence(found, NODES, lambda texts: [p.node for p in places.of(texts)])

    def dead(self, names: Collection[str]) -> Dead:
        return Dead(
            endpoints=frozenset(e for e, node in self.node_of.items() if node in names),
            uncertain=frozenset(e for e, node in self.node_of.items() if node is None),
            nodes=tuple(names),
        )

    def losses(self, names: Collection[str]) -> tuple[ServiceLoss, ...]:
        return losses(self.services, self.dead(names))


def exact(weights: Sequence[Dyadic]) -> list[Bounds]:
    return [Bounds(each, each) for each in weights]


@st.composite
def drawn(draw: st.DrawFn, *, most: int = 6, known: bool) -> tuple[list[Bounds], Dyadic]:
    """Draw shares as a chain of draws gives them, and what of them is not resolved.

    Where not all is known each share is between 0 and twice what it is, or just what it is.
    """
    left, weights = ALWAYS, []
    bits = draw(st.sampled_from((1, 2, 31)))
    for threshold in draw(st.lists(st.integers(1, 2**bits - 1), max_size=most - 1)):
        taken = Dyadic.of(threshold, bits)
        weights.append(left * taken)
        left = left * ~taken
    weights.append(left)
    if not known:
        loose = [
            Bounds(NEVER, min(ALWAYS, each + each) if each <= ~each else ALWAYS) for each in weights
        ]
        kinds = draw(st.lists(st.booleans(), min_size=len(weights), max_size=len(weights)))
        shares = [
            loose[at] if kind else Bounds(each, each)
            for at, (each, kind) in enumerate(zip(weights, kinds, strict=True))
        ]
        return shares, draw(st.sampled_from((NEVER, Dyadic.of(1, 2), ALWAYS)))
    if draw(st.integers(0, 5)) == 0:
        weights.pop()  # the last rule is lost: what is left reaches nobody
    return exact(weights), NEVER


@st.composite
def placed(draw: st.DrawFn, *, known: bool = False, most: int = 5) -> Placed:
    """Draw ServicePorts, all known or not, with routes that may differ."""
    whole = known or draw(st.booleans())
    homes: st.SearchStrategy[str | None] = st.sampled_from(NODES)
    node_of: dict[Endpoint, str | None] = {
        each: draw(homes if whole or draw(st.integers(0, 9)) else st.none()) for each in _ENDPOINTS
    }
    services = []
    for number in range(draw(st.integers(1, most))):
        routes: list[Route] = []
        unfilled = []
        for frontend in _KINDS[: draw(st.sampled_from((1, 1, 2)))]:
            if not whole and draw(st.integers(0, 9)) == 0:
                unfilled.append(frontend)
            for source in _SOURCES[: draw(st.integers(1, 4))]:
                again = draw(st.booleans())
                if routes and again:
                    routes.append(Route(frontend, source, routes[-1].shares, routes[-1].unresolved))
                    continue
                shares, unresolved = draw(drawn(known=whole or draw(st.booleans())))
                endpoints = draw(st.permutations(_ENDPOINTS))
                made = tuple(
                    Share(e, share, masquerade=False)
                    for e, share in zip(endpoints, shares, strict=False)
                )
                routes.append(Route(frontend, source, made, unresolved))
        services.append(
            ServicePort(
                name=service_name(f"ns/s{number}"),
                protocol="tcp",
                frontends=_KINDS,
                routes=tuple(routes),
                unfilled=tuple(unfilled),
            )
        )
    return Placed(tuple(services), node_of)


some_nodes = st.sets(st.sampled_from(range(len(NODES))), min_size=1)


def names(groups: Iterable[int]) -> list[str]:
    """Return the names of nodes by their places."""
    return [NODES[each] for each in sorted(groups)]
