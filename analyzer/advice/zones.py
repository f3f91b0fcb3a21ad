"""Endpoints with the zones of their nodes, which older EndpointSlices omit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analyzer.advice.objects import node_of, nodes_of, zone_of
from analyzer.parsers.api_objects import Object, at, elements, text


def with_zones(items: Sequence[Object], slices: Sequence[Object]) -> list[Object]:
    """Return slices whose endpoints have their zone, if their Node has one."""
    zones = {name: zone_of(node) for name, node in nodes_of(items).items()}

    def placed(endpoint: Any) -> Any:
        zone = text(at(endpoint, "zone")) or zones.get(node_of(endpoint) or "")
        return {**endpoint, "zone": zone} if zone else endpoint

    return [{**i, "endpoints": [placed(e) for e in elements(i, "endpoints")]} for i in slices]
