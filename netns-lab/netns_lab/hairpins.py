"""Hairpin routes: each living endpoint sends flows to its own Service."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from analyzer.kubeproxy.view import Route, ServicePort
from netns_lab.arriving import Arriving, seen_from
from netns_lab.measure import RouteRun
from netns_lab.topology import Host

if TYPE_CHECKING:
    from netns_lab.experiment import Lab


def hairpins(
    kind: type[RouteRun], lab: Lab, service: ServicePort, route: Route, flows: int
) -> Iterator[RouteRun]:
    """Yield the flows of a hairpin route, of each sender its part, one after the other."""
    senders = [e for e in route.shares if lab.behind.why_not(service, route, e.endpoint) is None]
    part = -(-flows // max(1, len(senders)))
    for share in senders:
        alone, sender = seen_from(service, route, share), share.endpoint.address
        made = kind if lab.behind.node_of(sender) is None else _BehindRun
        yield made(lab, service, alone, part, sender)


class _BehindRun(RouteRun):
    """The flows of an endpoint whose node has rules of its own."""

    def _expected(self, place: tuple[ServicePort, Route], host: Host) -> Arriving:
        del host
        return self._lab.behind.expected(*place, place[1].shares[0].endpoint)
