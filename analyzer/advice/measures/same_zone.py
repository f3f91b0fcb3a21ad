"""``trafficDistribution: PreferClose``: flows stay in their zone where it has an endpoint."""

from __future__ import annotations

from analyzer.advice.hints import SAME_NODE, SAME_ZONE, hinted
from analyzer.advice.measure import Key, Measure, Refused, Situation, Subject
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


def change(situation: Situation, key: Key) -> Situation | Refused:
    """Return a situation in which each ready endpoint is hinted for its own zone.

    Source: KEP-4444; a kube-proxy before 1.31 looks for an annotation, too.
    """
    service = service_of(situation.items, key)
    if service is None:
        return Refused("the Service itself is not among the objects")
    if at(service, "spec", "trafficDistribution") in (*SAME_ZONE, SAME_NODE):
        return Refused("its trafficDistribution keeps flows near already")
    if not any(zone_of(node) for node in nodes_of(situation.items).values()):
        return Refused("no node says in which zone it is")
    slices = with_zones(situation.items, slices_of(situation.items, key))
    ready = [e for item in slices for e in elements(item, "endpoints") if is_usable(e)]
    if not all(text(at(each, "zone")) for each in ready):
        return Refused("the zone of some of its endpoints is not known")
    items = with_slices(situation.items, key, hinted(slices, by_node=False))
    annotations = {
        **mapping(at(service, "metadata", "annotations")),
        "service.kubernetes.io/topology-mode": "Auto",
    }
    changed = with_spec(service, trafficDistribution=SAME_ZONE[0])
    changed["metadata"] = {**service["metadata"], "annotations": annotations}
    return replace(situation, items=with_service(items, key, changed))


MEASURE = Measure(
    name="same-zone",
    says="trafficDistribution: PreferClose",
    subject=Subject.SERVICE,
    change=change,
    unsaid=("before 1.31 the controller gives hints only where zones are in balance",),
)
