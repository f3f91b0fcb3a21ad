"""Routes and Services of a few endpoints, of which some are dead."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address

from hypothesis import strategies as st

from analyzer.failure.models import Dead
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
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from tests.support.dumps import at, chance, cluster_ip, dump, endpoint

HALF = Bounds(Dyadic.of(1, 1), Dyadic.of(1, 1))
NOTHING = Bounds(NEVER, NEVER)
ALL = Bounds(ALWAYS, ALWAYS)
FRONTEND = Frontend(FrontendKind.CLUSTER_IP, IPv4Address("10.96.0.1"), 80)
ENDPOINTS = [at(f"10.0.0.{number}") for number in range(1, 7)]
sets_of_endpoints = st.sets(st.sampled_from(ENDPOINTS))
PROBABILITIES = ("0.50000000000", "0.33333333302", "0.10000000009")
UNREAD = "-m nonesuch --of src"


def dying(endpoints: Iterable[Endpoint]) -> Dead:
    """Return what is dead where these endpoints are."""
    return Dead(endpoints=frozenset(endpoints))


def route(weights: list[Dyadic]) -> Route:
    """Return the route from a pod to the first endpoints, which have these shares."""
    shares = (
        Share(e, Bounds(w, w), masquerade=False) for e, w in zip(ENDPOINTS, weights, strict=False)
    )
    return Route(FRONTEND, Source.POD, tuple(shares), NEVER)


@st.composite
def exact_routes(draw: st.DrawFn) -> Route:
    """Draw a route as a chain of statistic rules gives it: each takes a part of what is left."""
    left, weights = ALWAYS, []
    for threshold in draw(st.lists(st.integers(1, 2**31 - 1), max_size=5)):
        taken = Dyadic.of(threshold, 31)
        weights.append(left * taken)
        left = left * ~taken
    return route([*weights, left])


def with_routes(*routes: Route) -> ServicePort:
    """Return a ServicePort with these routes to its ClusterIP."""
    return ServicePort(
        name=service_name("ns/a"), protocol="tcp", frontends=(FRONTEND,), routes=routes
    )


def service(rules: list[tuple[str, bool, int]], missing: set[int]) -> str:
    """Return the dump of a Service whose rules draw, perhaps with a match, an endpoint each."""
    numbers = {number for _, _, number in rules}
    return dump(
        cluster_ip(),
        "-A KUBE-SVC-A",
        *(
            chance(probability, f"KUBE-SEP-{number}", match=UNREAD if unread else "")
            for probability, unread, number in rules
        ),
        *(endpoint(f"KUBE-SEP-{n}", f"10.0.0.{n}:80") for n in sorted(numbers - missing)),
        missing={f"KUBE-SEP-{n}" for n in missing},
    )
