"""What a failure costs ServicePorts at several nodes, whose rules may differ.

Theory of operation: the node of a client decides which rules draw its endpoint. So a ServicePort
has as many losses as there are nodes, and the worst is what some client has. Bounds are those of
the worst, too: it is at least the greatest lower bound, and at most the greatest upper one, which
may be from two nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from analyzer.failure.loss import CUT_OFF, HARM, LossState, ServiceLoss
from analyzer.kubeproxy.view import Route, ServicePort
from analyzer.model.probability import Bounds
from analyzer.model.value import replace, value


@value(kw_only=True)
class WorstLoss:
    """What a ServicePort loses at the node where it loses most.

    Attributes:
        loss: as it is there; its highest loss is bounded by those at all nodes.
        nodes: those with that loss.
        missing: those whose dumps do not have it.
        is_silenced_everywhere: whether it is in total loss, and no flow reaches an endpoint at any
            of the nodes that have it.
    """

    loss: ServiceLoss
    nodes: tuple[str, ...]
    missing: tuple[str, ...] = ()
    is_silenced_everywhere: bool = False


def worst_of(found: Mapping[str, Sequence[ServiceLoss]]) -> tuple[WorstLoss, ...]:
    """Return the worst loss of each ServicePort, from its losses by node."""
    return tuple(_worst(losses, found.keys()) for losses in by_service_port(found))


def together(losses: Mapping[str, ServiceLoss]) -> ServicePort:
    """Return a ServicePort with its routes at all of these nodes, equal ones once."""
    services = [each.service for each in losses.values()]
    routes: dict[object, Route] = {}
    for each in services:
        for route in each.routes:
            way = route.frontend, route.source, route.networks
            routes.setdefault((*way, *_drawn(route)), route)
    return replace(
        services[0],
        frontends=tuple(dict.fromkeys(f for each in services for f in each.frontends)),
        routes=tuple(routes.values()),
        unfilled=tuple(dict.fromkeys(f for each in services for f in each.unfilled)),
    )


def _drawn(route: Route) -> tuple[object, ...]:
    endpoints, shares = route.columns()
    return tuple(endpoints), tuple(shares), route.unresolved


def by_service_port(
    found: Mapping[str, Sequence[ServiceLoss]],
) -> list[dict[str, ServiceLoss]]:
    """Return the losses of each ServicePort, by node.

    A ServicePort whose IP version a dump does not show is matched with another dump's by name.
    """
    versions: dict[tuple[str, str], set[int | None]] = {}
    for losses in found.values():
        for each in losses:
            versions.setdefault(_name(each.service), set()).add(each.service.version)
    same: dict[tuple[str, str, int | None], dict[str, ServiceLoss]] = {}
    for node, losses in found.items():
        for each in losses:
            name = _name(each.service)
            known = versions[name] - {None}
            version = each.service.version
            if version is None and len(known) == 1:
                (version,) = known
            same.setdefault((*name, version), {})[node] = each
    return [*same.values()]


def _name(service: ServicePort) -> tuple[str, str]:
    return service.name.text, service.protocol


def _worst(losses: Mapping[str, ServiceLoss], nodes: Iterable[str]) -> WorstLoss:
    worst = min(losses.values(), key=_rank)
    lower = max(each.worst.lower for each in losses.values())
    upper = max(each.worst.upper for each in losses.values())
    bounds = Bounds(lower, upper)
    at = [name for name, e in losses.items() if (e.state, e.worst) == (worst.state, worst.worst)]
    if bounds != worst.worst:
        at = [n for n, e in losses.items() if e.worst.lower == lower or e.worst.upper == upper]
        worst = _bounded(worst, losses.values(), bounds)
    # Each node has hostPorts of its own.
    has_own = worst.service.is_host_port
    missing = () if has_own else tuple(name for name in nodes if name not in losses)
    states = {each.state for each in losses.values()}
    return WorstLoss(
        loss=worst,
        nodes=tuple(at),
        missing=missing,
        is_silenced_everywhere=worst.state is LossState.SILENCED and states <= CUT_OFF,
    )


def _rank(loss: ServiceLoss) -> tuple[int, float, float]:
    return HARM[loss.state], -float(loss.worst.upper), -float(loss.worst.lower)


def _bounded(worst: ServiceLoss, losses: Iterable[ServiceLoss], bounds: Bounds) -> ServiceLoss:
    """Return a loss whose highest has these bounds, on the route that may lose most."""
    greatest = max(losses, key=lambda each: each.worst.upper).worst_route
    assert greatest is not None  # bounds are 0 where there is no route
    return replace(worst, routes=(replace(greatest, loss=bounds), *worst.routes))
