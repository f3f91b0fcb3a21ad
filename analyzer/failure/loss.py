"""The share of new flows that is lost: on dead endpoints, and in every other way."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator

from analyzer.failure.hairpin_loss import hairpin_losses
from analyzer.failure.models import Dead
from analyzer.failure.route_loss import (
    Count,
    DrawnLosses,
    KnownLosses,
    RouteLoss,
    greatness,
)
from analyzer.kubeproxy.view import Endpoint, ServicePort, Source
from analyzer.model.endings import total
from analyzer.model.probability import NEVER, Bounds
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


@enum.unique
class LossState(enum.Enum):
    """The state of a ServicePort after a failure, over all routes that may lead to an endpoint.

    UNTOUCHED: no new flow is lost. DEGRADED (partial loss): on some route, some certainly are.
    SILENCED (total loss): some certainly are, and on no route can a new flow reach a living
    endpoint. UNKNOWN: some may be lost, but not certainly; or nothing is known of its endpoints.
    NO_ENDPOINTS: it has none, dead or alive.
    """

    UNTOUCHED = "untouched"
    DEGRADED = "degraded"
    SILENCED = "silenced"
    UNKNOWN = "unknown"
    NO_ENDPOINTS = "no-endpoints"


#: Of a ServicePort with these states at all living nodes no client reaches an endpoint.
CUT_OFF: Final = frozenset({LossState.SILENCED, LossState.NO_ENDPOINTS})
#: The greatest harm first.
HARM: Final = {
    LossState.SILENCED: 0,
    LossState.DEGRADED: 1,
    LossState.UNKNOWN: 2,
    LossState.NO_ENDPOINTS: 3,
    LossState.UNTOUCHED: 4,
}


@value(kw_only=True)
class ServiceLoss:
    """What one ServicePort loses.

    Attributes:
        cluster: the loss of new flows from a pod to the ClusterIP; None without a ClusterIP.
        routes: the same for each frontend and source.
    """

    service: ServicePort
    cluster: RouteLoss | None
    routes: tuple[RouteLoss, ...]
    dead: tuple[Endpoint, ...]
    state: LossState

    @property
    def loss(self) -> Bounds | None:
        """The share of new flows from a pod to the ClusterIP that is lost."""
        return None if self.cluster is None else self.cluster.loss

    @property
    def worst(self) -> Bounds:
        """The highest loss of any route; 0 if there are none."""
        route = self.worst_route
        return Bounds(NEVER, NEVER) if route is None else route.loss

    @property
    def worst_route(self) -> RouteLoss | None:
        """The first route of those with the highest loss; None if there are none."""
        return max(self.routes, key=lambda r: greatness(r.loss), default=None)

    @property
    def otherwise(self) -> RouteLoss | None:
        """The first of the routes that lose most flows in other ways than on dead endpoints.

        None if no route does.
        """
        # Most routes have the same ones.
        firsts = {id(each.otherwise): each for each in reversed(self.routes) if each.otherwise}
        some = [(each, total(each.otherwise)) for each in reversed(firsts.values())]
        found = max(some, key=lambda each: (each[1].lower, each[1].upper), default=None)
        return None if found is None else found[0]

    @property
    def nowhere(self) -> Bounds:
        """The highest share that reaches no endpoint at all, among routes that lead to some."""
        every = [r.nowhere for r in self.routes if r.leads]
        return max(every, key=lambda b: (b.lower, b.upper), default=Bounds(NEVER, NEVER))


def losses(
    services: Iterable[ServicePort], dead: Dead, count: Count = Count.ALL
) -> tuple[ServiceLoss, ...]:
    """Return what each ServicePort loses when what is `dead` no longer answers."""
    known = KnownLosses()
    return tuple(service_loss(service, dead, count, known) for service in services)


def in_order(found: Iterable[ServiceLoss], by: str) -> tuple[ServiceLoss, ...]:
    """Return losses by `name` of the Service, its number of `endpoints`, or by `loss`.

    The highest first; equal ones by name.
    """
    name = sorted(found, key=lambda each: (each.service.name.text, each.service.protocol))
    match by:
        case "endpoints":
            return tuple(sorted(name, key=lambda each: -len(each.service.endpoints)))
        case "loss":
            return tuple(sorted(name, key=lambda each: -float(each.worst.upper)))
        case _:
            return tuple(name)


def service_losses(
    services: Iterable[ServicePort], dead: Dead, count: Count = Count.ALL
) -> Iterator[ServiceLoss]:
    """Yield the loss of one ServicePort as several nodes have it; shared lists are counted once."""
    drawn = DrawnLosses(dead, (), count)
    for service in services:
        own = DrawnLosses(dead, service.unfilled, count) if service.unfilled else drawn
        yield _service_loss(service, dead, own)


def service_loss(
    service: ServicePort,
    dead: Dead,
    count: Count = Count.ALL,
    known: KnownLosses | None = None,
) -> ServiceLoss:
    """Return what one ServicePort loses; `known` is from others, with the same dead."""
    return _service_loss(service, dead, DrawnLosses(dead, service.unfilled, count, known))


def _service_loss(service: ServicePort, dead: Dead, drawn: DrawnLosses) -> ServiceLoss:
    # The dead send nothing; living pods lose hairpin flows if rules drop them.
    others = [drawn.of(r) for r in service.routes if r.source is not Source.HAIRPIN]
    if drawn.count is Count.ALL:
        others += hairpin_losses(service, drawn)
    routes = tuple(others)
    cluster = service.cluster_route
    endpoints = service.endpoints
    return ServiceLoss(
        service=service,
        cluster=None if cluster is None else drawn.of(cluster),
        routes=routes,
        dead=tuple(e for e in endpoints if e in dead.endpoints) if dead.endpoints else (),
        state=_state(endpoints, routes),
    )


def _state(endpoints: tuple[Endpoint, ...], routes: tuple[RouteLoss, ...]) -> LossState:
    leading = [each for each in routes if each.leads]
    if not leading:
        return LossState.NO_ENDPOINTS
    if any(each.loss.lower for each in leading):
        some_survive = any(each.survives.upper for each in leading)
        return LossState.DEGRADED if some_survive else LossState.SILENCED
    if not endpoints or any(each.loss.upper for each in leading):
        return LossState.UNKNOWN
    return LossState.UNTOUCHED
