"""What share of new flows lands on dead endpoints."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Sequence

from analyzer.kubeproxy.view import Endpoint, Route, ServicePort, Source, View
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic, capped_sum
from analyzer.model.value import value


@enum.unique
class State(enum.Enum):
    """What a failure makes of a ServicePort."""

    UNTOUCHED = "untouched"
    DEGRADED = "degraded"
    SILENCED = "silenced"
    NO_ENDPOINTS = "no-endpoints"


@value
class RouteLoss:
    """The share of new flows on one route that lands on dead endpoints."""

    route: Route
    loss: Bounds


@value(kw_only=True)
class ServiceLoss:
    """What one ServicePort loses.

    Attributes:
        loss: of new flows from a pod to the ClusterIP; None without a ClusterIP.
        routes: the same for each frontend and source.
    """

    service: ServicePort
    loss: Bounds | None
    routes: tuple[RouteLoss, ...]
    dead: tuple[Endpoint, ...]
    state: State

    @property
    def worst(self) -> Bounds:
        """The highest loss of any route; 0 without any."""
        every = [r.loss for r in self.routes]
        return max(every, key=lambda b: (b.upper, b.lower), default=Bounds(NEVER, NEVER))


def losses(
    view: View, dead: Collection[Endpoint], uncertain: Collection[Endpoint] = ()
) -> tuple[ServiceLoss, ...]:
    """Return what each ServicePort loses when the endpoints `dead` answer no more.

    Those of `uncertain` may be dead too.
    """
    dead, uncertain = frozenset(dead), frozenset(uncertain)
    return tuple(service_loss(service, dead, uncertain) for service in view.services)


def in_order(found: Iterable[ServiceLoss], by: str) -> tuple[ServiceLoss, ...]:
    """Return losses by `name` of the Service, its number of `endpoints`, or by `loss`.

    The most first, those that are alike by name.
    """
    name = sorted(found, key=lambda each: (each.service.name.text, each.service.protocol))
    match by:
        case "endpoints":
            return tuple(sorted(name, key=lambda each: -len(each.service.endpoints)))
        case "loss":
            return tuple(sorted(name, key=lambda each: -float(each.worst.upper)))
        case _:
            return tuple(name)


def service_loss(
    service: ServicePort, dead: Collection[Endpoint], uncertain: Collection[Endpoint] = ()
) -> ServiceLoss:
    """Return what one ServicePort loses."""
    drawn = _Drawn(frozenset(dead), frozenset(uncertain))
    routes = tuple(
        RouteLoss(route, drawn.loss(route))
        for route in service.routes
        if route.source is not Source.HAIRPIN  # the dead send nothing
    )
    cluster = service.cluster_route
    endpoints = service.endpoints
    return ServiceLoss(
        service=service,
        loss=None if cluster is None else drawn.loss(cluster),
        routes=routes,
        dead=tuple(e for e in endpoints if e in dead),
        state=_state(endpoints, routes),
    )


def route_loss(
    route: Route, dead: Collection[Endpoint], uncertain: Collection[Endpoint] = ()
) -> Bounds:
    """Bound the share of new flows on `route` that lands on `dead`, or on some of `uncertain`.

    What is not resolved may land anywhere, so on a dead endpoint too if there is one.
    """
    return _Drawn(frozenset(dead), frozenset(uncertain)).loss(route)


class _Drawn:
    """What is lost of lists of draws: routes from most sources have one and the same."""

    def __init__(self, dead: frozenset[Endpoint], uncertain: frozenset[Endpoint]) -> None:
        self._dead = dead
        self._uncertain = uncertain
        # By identity; the lists are kept, so that no other gets theirs.
        self._found: dict[tuple[int, int, Dyadic], tuple[object, Bounds]] = {}

    def loss(self, route: Route) -> Bounds:
        """Bound what is lost of a route."""
        if not self._dead and not self._uncertain:
            return Bounds(NEVER, NEVER)
        endpoints, shares = route.draws()
        key = id(endpoints), id(shares), route.unresolved
        if key not in self._found:
            found = self._loss(endpoints, shares, route.unresolved)
            self._found[key] = (endpoints, shares), found
        return self._found[key][1]

    def _loss(
        self, endpoints: Sequence[Endpoint], shares: Sequence[Bounds], unresolved: Dyadic
    ) -> Bounds:
        dead, uncertain = self._dead, self._uncertain
        untouched = dead.isdisjoint(endpoints) and uncertain.isdisjoint(endpoints)
        if untouched and not unresolved:
            return Bounds(NEVER, NEVER)
        drawn = list(zip(endpoints, shares, strict=True))
        lost = [share for end, share in drawn if end in dead]
        safe = [share for end, share in drawn if end not in dead and end not in uncertain]
        perhaps = [share for end, share in drawn if end in uncertain and end not in dead]
        upper = capped_sum([*(b.upper for b in (*lost, *perhaps)), unresolved])
        lower = capped_sum(b.lower for b in lost)
        surely_kept = capped_sum(b.lower for b in safe)
        return Bounds(lower, min(upper, ~surely_kept))


def _state(endpoints: tuple[Endpoint, ...], routes: tuple[RouteLoss, ...]) -> State:
    leading = [r.loss for r in routes if r.route.shares]
    if not endpoints:
        return State.NO_ENDPOINTS
    if all(loss.lower == ALWAYS for loss in leading):
        return State.SILENCED
    if all(not loss.upper for loss in leading):
        return State.UNTOUCHED
    return State.DEGRADED
