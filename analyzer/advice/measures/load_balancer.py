"""A load balancer on each node instead of one address in front of several API servers."""

from __future__ import annotations

from analyzer.advice.measure import ClusterState, Measure, NamespacedName, Refused, Subject
from analyzer.model.value import replace
from analyzer.outage.topologies import CLIENT_SIDE, EXTERNAL
from analyzer.parsers.roles import roles_of


def change(situation: ClusterState, _key: NamespacedName) -> ClusterState | Refused:
    """Return a situation in which each node tries all API servers.

    Source: k3s, pkg/agent/loadbalancer; Kubespray, docs/operations/ha-mode.md.
    """
    said = situation.said
    roles = roles_of(situation.items)
    masters = set(said.control_plane or roles.api or roles.control_plane)
    if not masters or len(masters) == 1:
        return Refused("one API server needs none")
    if said.load_balancer in ((CLIENT_SIDE,), (EXTERNAL,)) or said.preset in (
        "k3s",
        "one-load-balancer",
        "client-side-load-balancer",
    ):
        return Refused("no single node is in front of the API servers")
    return replace(situation, said=replace(said, load_balancer=(CLIENT_SIDE,)))


MEASURE = Measure(
    name="load-balancer",
    says="a load balancer on each node",
    subject=Subject.API,
    change=change,
)
