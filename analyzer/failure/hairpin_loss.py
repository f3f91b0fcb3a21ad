"""What an endpoint loses of its own flows to a frontend: of those that return to it, and others.

It draws as any pod of its node does; only the flows that it draws itself for end in another way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from analyzer.failure.models import Dead
from analyzer.failure.route_loss import DrawnLosses, RouteLoss, greatness
from analyzer.kubeproxy.routes.narrowest import narrowest
from analyzer.kubeproxy.view import Endpoint, Route, ServicePort, Source
from analyzer.model.addresses import Address
from analyzer.model.endings import Endings, part, total
from analyzer.model.probability import ALWAYS, NEVER, Bounds
from analyzer.model.value import replace, value


@value
class _Sender:
    """An endpoint that sends flows, and may lose those that return to it.

    Attributes:
        share: of its flows, what returns to it; lost: how rules lose some of that.
        route: that of all its flows, in which it is endpoint number `at`; None: it is not in it.
        is_alive: whether it certainly is; else it may be dead, and then sends nothing.
    """

    endpoint: Endpoint
    share: Bounds
    lost: Endings
    route: Route
    at: int | None
    is_alive: bool

    def loss(self, drawn: DrawnLosses) -> RouteLoss:
        """Return what it loses of all its flows if it is alive, which it is if it sends them."""
        lost: list[Endings] = [*self.route.losses()] or [()] * len(self.route.shares)
        if self.at is not None:
            lost[self.at] = self.lost
            return drawn.if_alive(self.endpoint).losing(self.route, lost)
        ends = part(self.lost, self.share)
        least = total(self.lost).lower * self.share.lower
        return RouteLoss(  # where its other flows go is not known
            route=self.route,
            loss=Bounds(least, ALWAYS),
            nowhere=Bounds(NEVER, ALWAYS),
            survives=Bounds(NEVER, ~least),
            on_dead=Bounds(NEVER, ALWAYS if drawn.is_anything_dead else NEVER),
            otherwise=ends,
        )


def hairpin_losses(service: ServicePort, drawn: DrawnLosses) -> Iterator[RouteLoss]:
    """Yield for each frontend the highest loss of a living endpoint's own flows.

    Only of endpoints that lose some of their hairpin flows to rules, or may: the others lose no
    more than any pod does.
    """
    for hairpin, senders in _every_sender(service, drawn):
        losses = [sender.loss(drawn) for sender in senders]
        most = max(losses, key=lambda each: greatness(each.loss), default=None)
        if most is None:
            continue
        every = zip(senders, losses, strict=True)
        least = max((found.loss.lower for each, found in every if each.is_alive), default=NEVER)
        yield replace(
            most,
            route=hairpin,
            loss=Bounds(least, most.loss.upper),
            survives=Bounds(most.survives.lower, max(most.survives.lower, ~least)),
        )


def flows_of_senders(service: ServicePort) -> Iterator[Route]:
    """Yield the routes of all flows of endpoints that lose hairpin flows, with what is lost."""
    for _, senders in _every_sender(service, DrawnLosses(Dead(endpoints=frozenset()))):
        for sender in senders:
            shares = list(sender.route.shares)
            if sender.at is not None:
                shares[sender.at] = replace(shares[sender.at], lost=sender.lost)
            yield replace(sender.route, shares=tuple(shares))


def _every_sender(
    service: ServicePort, drawn: DrawnLosses
) -> Iterator[tuple[Route, list[_Sender]]]:
    """Yield the hairpin routes of which flows are lost, and who sends them."""
    pods: list[Route] | None = None
    for hairpin in service.routes_from(Source.HAIRPIN):
        if lost := hairpin.losses():
            pods = [*service.routes_from(Source.POD)] if pods is None else pods
            yield hairpin, _senders(hairpin, lost, pods, drawn)


def sent_by(client: Address, service: ServicePort, route: Route) -> Route:
    """Return a route as flows of `client` have it: if it is an endpoint, with its hairpin flows."""
    lost: dict[Endpoint, Endings] = {}
    for hairpin in service.routes_from(Source.HAIRPIN):
        if hairpin.frontend == route.frontend:
            endpoints, _ = hairpin.draws()
            every = hairpin.losses() or [()] * len(endpoints)
            told = zip(endpoints, every, strict=True)
            lost |= {each: endings for each, endings in told if each.address == client}
    if not lost or (not route.losses() and not any(lost.values())):
        return route
    shares = [replace(s, lost=lost.get(s.endpoint, s.lost)) for s in route.shares]
    return replace(route, shares=tuple(shares))


def route_of_sender(endpoint: Endpoint, hairpin: Route, pods: Iterable[Route]) -> Route:
    """Return the route of all flows of an endpoint to the frontend of a hairpin route.

    That of the smallest network that it is in; else that of pods in none; of a frontend without
    routes of pods, its hairpin route.
    """
    own = [route for route in pods if route.frontend == hairpin.frontend]
    return narrowest(own, endpoint.address) or hairpin


def _senders(
    hairpin: Route, lost: Sequence[Endings], pods: Sequence[Route], drawn: DrawnLosses
) -> list[_Sender]:
    """Return the living endpoints that lose hairpin flows; of those alike, not all."""
    alike: dict[tuple[object, ...], list[_Sender]] = {}
    totals = {id(each): total(each) for each in lost}
    places: dict[int, dict[Endpoint, int]] = {}
    for endpoint, share, endings in zip(*hairpin.draws(), lost, strict=True):
        is_dead = drawn.is_dead(endpoint)
        if not endings or is_dead:
            continue
        route = route_of_sender(endpoint, hairpin, pods)
        if id(route) not in places:
            places[id(route)] = {each: at for at, each in enumerate(route.draws()[0])}
        at = places[id(route)].get(endpoint)
        own = share if at is None else route.draws()[1][at]
        others = route.losses() if at is not None else ()
        to_it = others[at] if others and at is not None else ()
        sender = _Sender(endpoint, own, endings, route, at, is_dead is False)
        key = totals[id(endings)], id(route), total(to_it), sender.is_alive, at is None
        alike.setdefault(key, []).append(sender)
    return [sender for held in alike.values() for sender in _extremes(held)]


def _extremes(senders: Sequence[_Sender]) -> Sequence[_Sender]:
    """Return some, of which one has the highest loss.

    What a sender may lose grows with both bounds of its share, or falls with both.
    """
    if all(each.share is senders[0].share for each in senders):
        return senders[:1]
    if all(each.share.is_exact for each in senders):
        found = [pick(senders, key=lambda each: each.share.lower) for pick in (min, max)]
    else:
        order = sorted(senders, key=lambda each: (each.share.upper, each.share.lower))
        found, most = [order[0]], [order[-1]]
        for each in order:
            if each.share.lower < found[-1].share.lower:
                found.append(each)
        for each in reversed(order):
            if each.share.lower > most[-1].share.lower:
                most.append(each)
        found += most
    return [*{id(each): each for each in found}.values()]
