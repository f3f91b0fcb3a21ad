"""Topology hints, set the way the EndpointSlice controller sets them.

With ``trafficDistribution`` they follow from where each endpoint is. With the annotation
``topology-mode: Auto`` the controller allots endpoints to zones by their nodes' CPUs: that is not
imitated.

Source: KEP-4444, and KEP-3015, "Addition of PreferSameNode": a hint for the endpoint's own node,
and the hint for its own zone as with PreferClose.
"""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.advice.measure import Refused
from analyzer.advice.objects import is_usable, node_of
from analyzer.parsers.api_objects import Object, at, elements, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

SAME_ZONE: Final = ("PreferClose", "PreferSameZone")
SAME_NODE: Final = "PreferSameNode"


def rehinted(
    service: Object, before: Sequence[Object], slices: Sequence[Object]
) -> list[Object] | Refused:
    """Return slices with the hints that they get after endpoints have moved."""
    if not any(at(e, "hints") for item in before for e in elements(item, "endpoints")):
        return [*slices]
    wanted = at(service, "spec", "trafficDistribution")
    if wanted not in (*SAME_ZONE, SAME_NODE):
        return Refused("its endpoints have hints, which the controller would reassign")
    return hinted(slices, by_node=wanted == SAME_NODE)


def hinted(slices: Sequence[Object], *, by_node: bool) -> list[Object]:
    """Return slices whose ready endpoints are hinted for their own zone, and node."""
    return [
        {**item, "endpoints": [_hinted(e, by_node=by_node) for e in elements(item, "endpoints")]}
        for item in slices
    ]


def _hinted(endpoint: Any, *, by_node: bool) -> Any:
    if not is_usable(endpoint):
        return endpoint
    hints: dict[str, Any] = {}
    zone, node = text(at(endpoint, "zone")), node_of(endpoint)
    if zone:
        hints["forZones"] = [{"name": zone}]
    if by_node and node:
        hints["forNodes"] = [{"name": node}]
    kept = {key: each for key, each in endpoint.items() if key != "hints"}
    return {**kept, "hints": hints} if hints else kept
