"""What share of new flows lands on dead endpoints."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Sequence

from analyzer.failure.models import Dead
from analyzer.kubeproxy.view import Endpoint, Frontend, Route, ServicePort, Source
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic, capped_sum
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction
    from typing import Final


@enum.unique
class State(enum.Enum):
    """What a failure makes of a ServicePort, over all routes that may lead to an endpoint.

    UNTOUCHED: no new flow lands on a dead endpoint. DEGRADED: on some route some certainly do.
    SILENCED: some certainly do, and on no route a new flow can reach a living endpoint. UNKNOWN:
    some may, and none certainly does; or nothing of its endpoints is known. NO_ENDPOINTS: it has
    none, dead or alive.
    """

    UNTOUCHED = "untouched"
    DEGRADED = "degraded"
    SILENCED = "silenced"
    UNKNOWN = "unknown"
    NO_ENDPOINTS = "no-endpoints"


#: The greatest harm first.
HARM: Final = {
    State.SILENCED: 0,
    State.DEGRADED: 1,
    State.UNKNOWN: 2,
    State.NO_ENDPOINTS: 3,
    State.UNTOUCHED: 4,
}


@value(kw_only=True)
class RouteLoss:
    """What becomes of the new flows on one route.

    Attributes:
        loss: the share that lands on dead endpoints.
        nowhere: the share that reaches no endpoint at all, whatever is dead.
        survives: the share that reaches a living endpoint.
    """

    route: Route
    loss: Bounds
    nowhere: Bounds
    survives: Bounds

    @property
    def leads(self) -> bool:
        """Whether a new flow may reach an endpoint, dead or alive."""
        return self.nowhere.lower != ALWAYS

    def is_lost_beyond(self, most: Fraction) -> bool:
        """Tell whether flows may land on dead endpoints, and more than `most` on no living one."""
        return bool(self.loss.upper) and (~self.survives.lower).as_fraction() > most


@value(kw_only=True)
class ServiceLoss:
    """What one ServicePort loses.

    Attributes:
        cluster: of new flows from a pod to the ClusterIP; None without a ClusterIP.
        routes: the same for each frontend and source.
    """

    service: ServicePort
    cluster: RouteLoss | None
    routes: tuple[RouteLoss, ...]
    dead: tuple[Endpoint, ...]
    state: State

    @property
    def loss(self) -> Bounds | None:
        """The share of new flows from a pod to the ClusterIP that lands on dead endpoints."""
        return None if self.cluster is None else self.cluster.loss

    @property
    def worst(self) -> Bounds:
        """The highest loss of any route; 0 without any."""
        route = self.worst_route
        return Bounds(NEVER, NEVER) if route is None else route.loss

    @property
    def worst_route(self) -> RouteLoss | None:
        """The first route of those with the highest loss; None without any."""
        return max(self.routes, key=lambda r: (r.loss.upper, r.loss.lower), default=None)

    @property
    def nowhere(self) -> Bounds:
        """The highest share that reaches no endpoint at all, of routes that lead to some."""
        every = [r.nowhere for r in self.routes if r.leads]
        return max(every, key=lambda b: (b.lower, b.upper), default=Bounds(NEVER, NEVER))


def losses(services: Iterable[ServicePort], dead: Dead) -> tuple[ServiceLoss, ...]:
    """Return what each ServicePort loses when what is `dead` answers no more."""
    return tuple(service_loss(service, dead) for service in services)


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


def service_loss(service: ServicePort, dead: Dead) -> ServiceLoss:
    """Return what one ServicePort loses."""
    drawn = _Drawn(dead, service.unfilled)
    # The dead send nothing.
    routes = tuple(drawn.of(r) for r in service.routes if r.source is not Source.HAIRPIN)
    cluster = service.cluster_route
    endpoints = service.endpoints
    return ServiceLoss(
        service=service,
        cluster=None if cluster is None else drawn.of(cluster),
        routes=routes,
        dead=tuple(e for e in endpoints if e in dead.endpoints),
        state=_state(endpoints, routes),
    )


def route_loss(route: Route, dead: Dead) -> RouteLoss:
    """Return what becomes of the flows of one route.

    What is not resolved may land anywhere: on a dead endpoint if anything is dead, which the
    dump need not show, on a living one, or on none.
    """
    return _Drawn(dead).of(route)


_NONE: Final = Bounds(NEVER, NEVER)
_ANY: Final = Bounds(NEVER, ALWAYS)


class _Drawn:
    """What is lost of lists of draws: routes from most sources have one and the same."""

    def __init__(self, dead: Dead, unfilled: Collection[Frontend] = ()) -> None:
        self._dead = dead
        self._unfilled = unfilled
        # By identity; the lists are kept, so that no other gets theirs.
        self._lost: dict[tuple[int, int, Dyadic], tuple[object, Bounds, Bounds]] = {}
        self._nowhere: dict[tuple[int, Dyadic], tuple[object, Bounds]] = {}

    def of(self, route: Route) -> RouteLoss:
        """Bound what becomes of the flows of a route."""
        if route.frontend in self._unfilled:
            # The middle of a sync, or what is left behind it: there may be endpoints again.
            loss = _ANY if self._dead.is_anything else _NONE
            return RouteLoss(route=route, loss=loss, nowhere=_ANY, survives=_ANY)
        endpoints, shares = route.draws()
        nowhere = self._reaches_none(shares, route.unresolved)
        key = id(endpoints), id(shares), route.unresolved
        if key not in self._lost:
            loss, survives = self._lot(endpoints, shares, route.unresolved, nowhere)
            self._lost[key] = (endpoints, shares), loss, survives
        _, loss, survives = self._lost[key]
        return RouteLoss(route=route, loss=loss, nowhere=nowhere, survives=survives)

    def _reaches_none(self, shares: Sequence[Bounds], unresolved: Dyadic) -> Bounds:
        key = id(shares), unresolved
        if key not in self._nowhere:
            certain = capped_sum(share.lower for share in shares)
            possible = capped_sum([*(share.upper for share in shares), unresolved])
            self._nowhere[key] = shares, Bounds(~possible, ~certain)
        return self._nowhere[key][1]

    def _lot(
        self,
        endpoints: Sequence[Endpoint],
        shares: Sequence[Bounds],
        unresolved: Dyadic,
        nowhere: Bounds,
    ) -> tuple[Bounds, Bounds]:
        """Return the shares that land on the dead and on the living."""
        dead, uncertain = self._dead.endpoints, self._dead.uncertain
        hidden = unresolved if self._dead.is_anything else NEVER
        if dead.isdisjoint(endpoints) and uncertain.isdisjoint(endpoints) and not hidden:
            return _NONE, Bounds(~nowhere.upper, ~nowhere.lower)
        drawn = list(zip(endpoints, shares, strict=True))
        lost = [share for end, share in drawn if end in dead]
        safe = [share for end, share in drawn if end not in dead and end not in uncertain]
        perhaps = [share for end, share in drawn if end in uncertain and end not in dead]
        most_lost = capped_sum([*(b.upper for b in (*lost, *perhaps)), hidden])
        least_lost = capped_sum(b.lower for b in lost)
        most_kept = capped_sum([*(b.upper for b in (*safe, *perhaps)), unresolved])
        least_kept = capped_sum(b.lower for b in safe)
        return (
            Bounds(least_lost, min(most_lost, ~least_kept)),
            Bounds(least_kept, min(most_kept, ~least_lost)),
        )


def _state(endpoints: tuple[Endpoint, ...], routes: tuple[RouteLoss, ...]) -> State:
    leading = [each for each in routes if each.leads]
    if not leading:
        return State.NO_ENDPOINTS
    if any(each.loss.lower for each in leading):
        some_survive = any(each.survives.upper for each in leading)
        return State.DEGRADED if some_survive else State.SILENCED
    if not endpoints or any(each.loss.upper for each in leading):
        return State.UNKNOWN
    return State.UNTOUCHED
