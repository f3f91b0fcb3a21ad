"""The routes of a ServicePort on which new flows may be treated differently, at one node or all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.kubeproxy.view import Route, ServicePort, Source
from analyzer.model.probability import Bounds
from analyzer.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.kubeproxy.predict.every_node import EveryNode


@value
class RouteShares:
    """A route, with its endpoints as they are printed and the share of each.

    Attributes:
        vantages: the nodes whose rules have it; None for all nodes considered.
    """

    route: Route
    printed: Sequence[str]
    shares: Sequence[Bounds]
    vantages: frozenset[str] | None = None

    def is_like(self, other: RouteShares) -> bool:
        """Return whether new flows on another route have the same losses, whatever fails."""
        return (
            self.route.unresolved == other.route.unresolved
            and (self.printed is other.printed or (*self.printed,) == (*other.printed,))
            and (self.shares is other.shares or (*self.shares,) == (*other.shares,))
        )


@value
class Ways:
    """The routes of a ServicePort on which losses may differ, the first of each kind.

    Attributes:
        unfilled: one to a frontend without known routes.
    """

    known: tuple[RouteShares, ...]
    unfilled: Route | None = None


def ways(service: ServicePort) -> Ways:
    """Return the routes of a ServicePort to evaluate."""
    found: list[RouteShares] = []
    unfilled: Route | None = None
    last: tuple[object, object, object] = (None, None, None)
    for route in _routes(service):
        if service.unfilled and route.frontend in service.unfilled:
            unfilled = unfilled or route
            continue
        printed, shares = route.columns()
        # Routes from most sources have the very same lists.
        if printed is last[0] and shares is last[1] and route.unresolved is last[2]:
            continue
        last = printed, shares, route.unresolved
        way = RouteShares(route, printed, shares)
        if not found or not any(way.is_like(each) for each in found):
            found.append(way)
    return Ways(tuple(found), unfilled)


def _routes(service: ServicePort) -> Iterator[Route]:
    """Yield the routes of all but hairpin flows, in their order: the dead send nothing."""
    if len(service.frontends) == 1:  # they need not all be made
        for source in Source:
            if source is not Source.HAIRPIN:
                yield from service.routes_from(source)
        return
    for route in service.routes:
        if route.source is not Source.HAIRPIN:
            yield route


def ways_of_every_node(service: EveryNode, every: frozenset[str]) -> Ways:
    """Return the routes of a ServicePort at every node, each with the nodes that have it.

    `every` are the names of all nodes.
    """
    found: list[tuple[RouteShares, set[str]]] = []
    by_end: dict[tuple[int, str], list[tuple[RouteShares, set[str]]]] = {}
    unfilled: Route | None = None
    for at in service.at:
        own = ways(at.service)
        unfilled = unfilled or own.unfilled
        for way in own.known:
            # To compare lists takes time, and those of different nodes begin with different ones.
            key = len(way.printed), way.printed[0] if way.printed else ""
            alike = by_end.setdefault(key, [])
            known = next((nodes for each, nodes in alike if way.is_like(each)), None)
            if known is None:
                entry = way, set(at.nodes)
                alike.append(entry)
                found.append(entry)
            else:
                known.update(at.nodes)
    return Ways(
        tuple(
            way if len(nodes) == len(every) else replace(way, vantages=frozenset(nodes))
            for way, nodes in found
        ),
        unfilled,
    )
