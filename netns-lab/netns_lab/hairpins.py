"""Hairpin routes: each living endpoint sends flows to its own Service."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from analyzer.kubeproxy.view import Route, ServicePort
from analyzer.model.measurement import Measurement
from analyzer.model.value import replace
from netns_lab.arriving import Arriving, seen_from
from netns_lab.backends import backend_of
from netns_lab.ending import with_rule
from netns_lab.measure import MASQUERADE_ROOM, Progress, RouteRun
from netns_lab.topology import Host

if TYPE_CHECKING:
    from netns_lab.experiment import Lab


def hairpins(
    kind: type[RouteRun],
    lab: Lab,
    service: ServicePort,
    route: Route,
    flows: int,
    progress: Progress | None,
) -> Iterator[Measurement]:
    """Send the flows of a hairpin route, of each sender its part, and account for each."""
    senders = [e for e in route.shares if lab.behind.why_not(service, route, e.endpoint) is None]
    part = -(-flows // max(1, len(senders)))
    # Flows differ by their sender: the node may know those of several.
    known = MASQUERADE_ROOM
    for share in senders:
        alone, sender = seen_from(service, route, share), share.endpoint.address
        node = lab.behind.node_of(sender)
        if node is None:
            run = kind(lab, service, alone, part, sender)
        else:
            run = _BehindRun(lab, service, alone, part, sender)
        forgets = known + part > MASQUERADE_ROOM
        known = part if forgets else known + part
        with lab.behind.sending(service, route, sender):
            found = run.measure(progress, forgets=forgets)
        if node is not None:
            backend = backend_of(node.node.given.ruleset)
            found = replace(found, node=node.name, backend=backend)
        yield with_rule(found, lab, service, alone, sender)


class _BehindRun(RouteRun):
    """The flows of an endpoint whose node has rules of its own."""

    def _expected(self, place: tuple[ServicePort, Route], host: Host) -> Arriving:
        del host
        return self._lab.behind.expected(*place, place[1].shares[0].endpoint)
