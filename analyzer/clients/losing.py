"""The ServicePort of which a client loses most new flows, where none is named."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.clients.world import World
from analyzer.kubeproxy.view import FrontendKind, ServicePort, Source


def losing_most(
    services: Sequence[ServicePort], world: World
) -> tuple[Sequence[ServicePort], Sequence[ServicePort]]:
    """Return the ServicePort that loses most of a client's flows, and those that may lose more.

    What counts is the client's own route: one that loses more on others says nothing of it. The
    second are those of which clients that rules single out may lose more than that.
    """
    lost = dict(zip(map(id, services), world.lost(services), strict=True))
    worst = sorted(
        services,
        key=lambda each: (
            # From outside, a ClusterIP is reachable only with an extra route to it.
            world.source is Source.EXTERNAL
            and world.route(each).frontend.kind is FrontendKind.CLUSTER_IP,
            -lost[id(each)][0],
            each.name.text,
        ),
    )[:1]
    most = max((lost[id(each)][0] for each in worst), default=0)
    return worst, [each for each in services if lost[id(each)][1] > most]
