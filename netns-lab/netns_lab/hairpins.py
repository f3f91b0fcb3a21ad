"""Hairpin routes: each living endpoint sends flows to its own Service."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from analyzer.kubeproxy.view import Route, ServicePort
from analyzer.model.measurement import Measurement
from netns_lab.arriving import seen_from
from netns_lab.ending import with_rule
from netns_lab.measure import MASQUERADE_ROOM, Progress, RouteRun

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
    senders = [each for each in route.shares if lab.why_mute(each.endpoint) is None]
    part = -(-flows // max(1, len(senders)))
    # Flows differ by their sender: the node may know those of several.
    known = MASQUERADE_ROOM
    for share in senders:
        alone = seen_from(service, route, share)
        run = kind(lab, service, alone, part, share.endpoint.address)
        forgets = known + part > MASQUERADE_ROOM
        known = part if forgets else known + part
        found = run.measure(progress, forgets=forgets)
        yield with_rule(found, lab, service, alone, share.endpoint.address)
