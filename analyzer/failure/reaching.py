"""Flows that reach an endpoint today: what a failure can still cost.

What other programs' rules drop or reject after the DNAT is lost whatever fails; the cost of a
failure concerns the rest.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer.failure.hairpin_loss import flows_of_senders
from analyzer.failure.loss import service_loss
from analyzer.failure.models import Dead
from analyzer.kubeproxy.predict.every_node import EveryNode
from analyzer.kubeproxy.view import Route, ServicePort, Source
from analyzer.model.endings import total
from analyzer.model.probability import ALWAYS, Bounds
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction


def reaching(services: Iterable[ServicePort]) -> tuple[ServicePort, ...]:
    """Return ServicePorts with the shares of flows that reach their endpoints.

    An endpoint that no flow reaches on a route is left out of that route.
    """
    return tuple(map(_reaching, services))


def reaching_from_endpoints(services: Iterable[ServicePort]) -> tuple[ServicePort, ...]:
    """Return as many ServicePorts with the routes of endpoints that lose hairpin flows.

    With the shares of flows that reach their endpoints; none at all if no endpoint loses any.
    """
    found = [_from_endpoints(service) for service in services]
    return tuple(found) if any(service.routes for service in found) else ()


def reaching_at_every_node(service: EveryNode) -> EveryNode:
    """Return the same for a ServicePort at every node."""
    return replace(
        service, at=tuple(replace(each, service=_reaching(each.service)) for each in service.at)
    )


def is_lost_beyond(services: Iterable[ServicePort], most: Fraction | None) -> bool:
    """Return whether a ServicePort may lose more than `most` with nothing dead; None: no limit."""
    if most is None:
        return False
    dead = Dead(endpoints=frozenset())
    return any(
        route.is_lost_beyond(most)
        for service in services
        if not service.is_quiet
        for route in service_loss(service, dead).routes
    )


def lost_now(services: Iterable[ServicePort]) -> Ternary:
    """Return whether on some route no new flow reaches an endpoint with nothing dead.

    Of one ServicePort, for example at every node. What kube-proxy refuses because there is no
    endpoint, or the source is not allowed, does not count, nor do hairpin flows.
    """
    dead = Dead(endpoints=frozenset())
    found = Ternary.FALSE
    for service in services:
        if service.is_quiet:
            continue
        for each in service_loss(service, dead).routes:
            lost = each.loss.upper and not each.survives.lower
            if lost and each.route.source is not Source.HAIRPIN:
                found |= Ternary.TRUE if each.loss.lower == ALWAYS else Ternary.UNKNOWN
    return found


def _from_endpoints(service: ServicePort) -> ServicePort:
    routes = () if service.is_quiet else tuple(map(_route, flows_of_senders(service)))
    return replace(service, routes=routes)


def _reaching(service: ServicePort) -> ServicePort:
    if service.is_quiet:
        return service
    routes = tuple(map(_route, service.routes))
    if all(new is old for new, old in zip(routes, service.routes, strict=True)):
        return service
    return replace(service, routes=routes)


def _route(route: Route) -> Route:
    lost = route.losses()
    if not lost:
        return route
    shares = []
    for share, endings in zip(route.shares, lost, strict=True):
        gone, drawn = total(endings), share.share
        left = Bounds(drawn.lower * ~gone.upper, drawn.upper * ~gone.lower)
        if left.upper:
            shares.append(replace(share, share=left, lost=()))
    return replace(route, shares=tuple(shares))
