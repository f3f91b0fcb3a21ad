"""``internalTrafficPolicy: Local``: flows of pods stay on their node, and are dropped elsewhere."""

from __future__ import annotations

from analyzer.advice.measure import ClusterState, Measure, NamespacedName, Refused, Subject, too_old
from analyzer.advice.objects import service_of, with_service, with_spec
from analyzer.model.value import replace
from analyzer.parsers.api_objects import at

_SINCE = 22


def change(situation: ClusterState, key: NamespacedName) -> ClusterState | Refused:
    """Return a situation in which a Service has that policy.

    Source: KEP-2086; kube-proxy looks at it since 1.22.
    """
    service = service_of(situation.items, key)
    if service is None:
        return Refused("the Service itself is not among the objects")
    if at(service, "spec", "internalTrafficPolicy") == "Local":
        return Refused("its internalTrafficPolicy is already Local")
    old = too_old(situation, _SINCE, "internalTrafficPolicy")
    if old is not None:
        return old
    changed = with_spec(service, internalTrafficPolicy="Local")
    return replace(situation, items=with_service(situation.items, key, changed))


MEASURE = Measure(
    name="local",
    says="internalTrafficPolicy: Local",
    subject=Subject.SERVICE,
    change=change,
    unsaid=(
        "where clients run: a pod on a node without an endpoint reaches nothing",
        "an endpoint that dies while its node is alive was the only one for the node's pods",
    ),
)
