"""``trafficDistribution: PreferClose``: flows stay in their zone where it has an endpoint.

A kube-proxy before 1.31 looks for the annotation ``topology-mode: Auto`` in its place. With that
the controller allots endpoints to zones by CPUs, and one need not be its own zone's.
"""

from __future__ import annotations

from analyzer.advice.hints import SAME_NODE, SAME_ZONE, hinted
from analyzer.advice.measure import ClusterState, Measure, NamespacedName, Refused, Subject, too_old
from analyzer.advice.objects import (
    is_usable,
    mapping,
    nodes_of,
    service_of,
    slices_of,
    with_service,
    with_slices,
    with_spec,
    zone_of,
)
from analyzer.advice.zones import with_zones
from analyzer.model.value import replace
from analyzer.parsers.api_objects import at, elements, text

_SINCE = 24
_WITHOUT_ANNOTATION = 31
_ANNOTATION = "service.kubernetes.io/topology-mode"


def change(situation: ClusterState, key: NamespacedName) -> ClusterState | Refused:
    """Return a situation in which each ready endpoint has a hint for its own zone.

    Source: KEP-2433, KEP-4444.
    """
    service = service_of(situation.items, key)
    if service is None:
        return Refused("the Service itself is not among the objects")
    if at(service, "spec", "trafficDistribution") in (*SAME_ZONE, SAME_NODE):
        return Refused("its trafficDistribution already prefers near endpoints")
    if not any(zone_of(node) for node in nodes_of(situation.items).values()):
        return Refused("no node has a zone")
    old = too_old(situation, _SINCE, "hints for zones")
    if old is not None:
        return old
    slices = with_zones(situation.items, slices_of(situation.items, key))
    ready = [e for item in slices for e in elements(item, "endpoints") if is_usable(e)]
    if not all(text(at(each, "zone")) for each in ready):
        return Refused("the zone of some of its endpoints is not known")
    items = with_slices(situation.items, key, hinted(slices, by_node=False))
    if situation.minor >= _WITHOUT_ANNOTATION:
        changed = with_spec(service, trafficDistribution=SAME_ZONE[0])
    else:
        annotations = {**mapping(at(service, "metadata", "annotations")), _ANNOTATION: "Auto"}
        changed = {**service, "metadata": {**service["metadata"], "annotations": annotations}}
    return replace(situation, items=with_service(items, key, changed))


MEASURE = Measure(
    name="same-zone",
    says="topology hints for zones",
    subject=Subject.SERVICE,
    change=change,
    unsaid=("before 1.31 the controller gives hints only if zones are balanced",),
)
