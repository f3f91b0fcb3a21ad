"""``trafficDistribution: PreferSameNode``: flows stay on their node where it has an endpoint.

It is what ``topologyKeys: ["kubernetes.io/hostname", "*"]`` of ServiceTopology was, from 1.17 on.
"""

from __future__ import annotations

from analyzer.advice.hints import SAME_NODE, hinted
from analyzer.advice.measure import ClusterState, Measure, NamespacedName, Refused, Subject, too_old
from analyzer.advice.objects import (
    is_usable,
    node_of,
    service_of,
    slices_of,
    with_service,
    with_slices,
    with_spec,
)
from analyzer.advice.zones import with_zones
from analyzer.model.value import replace
from analyzer.parsers.api_objects import at, elements

_SINCE = 34


def change(situation: ClusterState, key: NamespacedName) -> ClusterState | Refused:
    """Return a situation in which each ready endpoint has hints for its own node and zone.

    Source: KEP-3015; kube-proxy looks at hints for nodes since 1.34.
    """
    service = service_of(situation.items, key)
    if service is None:
        return Refused("the Service itself is not among the objects")
    if at(service, "spec", "trafficDistribution") == SAME_NODE:
        return Refused("its trafficDistribution is already PreferSameNode")
    old = too_old(situation, _SINCE, "hints for nodes")
    if old is not None:
        return old
    slices = with_zones(situation.items, slices_of(situation.items, key))
    ready = [e for item in slices for e in elements(item, "endpoints") if is_usable(e)]
    if not all(map(node_of, ready)):
        return Refused("the node of some of its endpoints is not known")
    items = with_slices(situation.items, key, hinted(slices, by_node=True))
    changed = with_spec(service, trafficDistribution=SAME_NODE)
    return replace(situation, items=with_service(items, key, changed))


MEASURE = Measure(
    name="same-node",
    says="topology hints for nodes",
    subject=Subject.SERVICE,
    change=change,
    unsaid=(
        "where clients run: those on the node of an endpoint use no other, however busy it is",
        "an endpoint that dies while its node is alive was the only one for the node's pods",
    ),
)
