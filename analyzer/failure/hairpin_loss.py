"""What an endpoint loses of its own flows to a frontend: of those that return to it, and others.

It draws as any pod of its node does; only the flows that it draws itself for end in another way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from analyzer.failure.models import Dead
from analyzer.failure.route_loss import DrawnLosses, RouteLoss, greatness
from analyzer.kubeproxy.view import Endpoint, Route, ServicePort, Source
from analyzer.model.endings import Endings
from analyzer.model.probability import Bounds
from analyzer.model.value import replace, value


@value
class _Sender:
    """An endpoint that sends flows, and may lose those that return to it.

    Attributes:
        share: of its flows, what returns to it; lost: how rules lose some of that.
        route: that of all its flows, in which it is endpoint number `at`; None: it is not in it.
    """

    endpoint: Endpoint
    share: Bounds
    lost: Endings
    route: Route
    at: int | None

    def loss(self, drawn: DrawnLosses) -> RouteLoss:
        """Return what it loses of all its flows; that it sends them shows that it is alive."""
        lost: list[Endings] = [*self.route.losses()] or [()] * len(self.route.shares)
        if self.at is not None:
            lost[self.at] = self.lost
        return drawn.if_alive(self.endpoint).losing(self.route, lost)


def hairpin_losses(service: ServicePort, drawn: DrawnLosses) -> Iterator[RouteLoss]:
    """Yield for each frontend the highest loss of an endpoint's own flows.

    Only of endpoints that lose some of their hairpin flows to rules, or may: the others lose no
    more than any pod does.
    """
    pods: list[Route] | None = None
    for hairpin in service.routes_from(Source.HAIRPIN):
        lost = hairpin.losses()
        if lost:
            pods = [*service.routes_from(Source.POD)] if pods is None else pods
            senders = _senders(hairpin, lost, pods, drawn)
            losses = [sender.loss(drawn) for sender in senders]
            most = max(losses, key=lambda each: greatness(each.loss), default=None)
            if most is not None:
                yield replace(most, route=hairpin)


def flows_of_senders(service: ServicePort) -> Iterator[Route]:
    """Yield the routes of all flows of endpoints that lose hairpin flows, with what is lost."""
    pods: list[Route] | None = None
    for hairpin in service.routes_from(Source.HAIRPIN):
        if lost := hairpin.losses():
            pods = [*service.routes_from(Source.POD)] if pods is None else pods
            drawn = DrawnLosses(Dead(endpoints=frozenset()))
            for sender in _senders(hairpin, lost, pods, drawn):
                shares = list(sender.route.shares)
                if sender.at is not None:
                    shares[sender.at] = replace(shares[sender.at], lost=sender.lost)
                yield replace(sender.route, shares=tuple(shares))


def route_of_sender(endpoint: Endpoint, hairpin: Route, pods: Iterable[Route]) -> Route:
    """Return the route of all flows of an endpoint to the frontend of a hairpin route.

    That of the smallest network that it is in; else that of pods in none; of a frontend without
    routes of pods, its hairpin route.
    """
    found, longest = hairpin, -2
    for route in pods:
        if route.frontend == hairpin.frontend:
            within = [each.prefixlen for each in route.networks if endpoint.address in each]
            length = max(within, default=-2 if route.networks else -1)
            if length > longest:
                found, longest = route, length
    return found


def _senders(
    hairpin: Route, lost: Sequence[Endings], pods: Sequence[Route], drawn: DrawnLosses
) -> list[_Sender]:
    """Return the living endpoints that lose hairpin flows; of those alike, not all."""
    alike: dict[tuple[object, ...], list[_Sender]] = {}
    places: dict[int, dict[Endpoint, int]] = {}
    for endpoint, share, endings in zip(*hairpin.draws(), lost, strict=True):
        is_dead = drawn.is_dead(endpoint)
        if not endings or is_dead:
            continue
        route = route_of_sender(endpoint, hairpin, pods)
        if id(route) not in places:
            places[id(route)] = {each: at for at, each in enumerate(route.draws()[0])}
        at = places[id(route)].get(endpoint)
        others = route.losses() if at is not None else ()
        to_it = others[at] if others and at is not None else ()
        sender = _Sender(endpoint, share, endings, route, at)
        key = id(endings), id(route), to_it, is_dead is None, at is None
        alike.setdefault(key, []).append(sender)
    return [sender for held in alike.values() for sender in _extremes(held)]


def _extremes(senders: Sequence[_Sender]) -> Sequence[_Sender]:
    """Return those of the lowest and the highest share, of which one has the highest loss.

    What a sender loses grows or falls with its share: bounds of the loss with those of the share.
    """
    if all(each.share is senders[0].share for each in senders):
        return senders[:1]
    orders = (lambda each: each.share.lower), (lambda each: each.share.upper)
    found = [pick(senders, key=order) for order in orders for pick in (min, max)]
    return [*{id(each): each for each in found}.values()]
