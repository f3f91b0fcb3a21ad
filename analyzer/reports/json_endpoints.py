"""The endpoints of a ServicePort as JSON, each once, with where it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from analyzer.kubeproxy.view import Endpoint
from analyzer.model.cluster import Cluster, Placement
from analyzer.reports.json_values import encode

#: Of what endpoints of IPv4 with a port are printed with, one below the other.
_OF_IPV4: Final = re.compile(r"[0-9.:\n]*+")
#: What stands behind the port where nothing says where endpoints are.
_NOWHERE: Final = ',"node":null,"zone":null}'


class EndpointTexts:
    """Writes endpoints: address, port, node and zone."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._places: dict[Placement, str] = {}

    def of_printed(self, printed: Sequence[str]) -> str:
        """Return endpoints of which nobody says where they are, joined, from what is printed."""
        together = "\n".join(printed)
        if _OF_IPV4.fullmatch(together) and together.count(":") == len(printed):
            # All at once: a call for each would take most of the time of a large document.
            between = f'{_NOWHERE},{{"address":"'
            parts = together.replace(":", '","port":').replace("\n", between)
            return f'{{"address":"{parts}{_NOWHERE}'
        return ",".join(map(_one, printed))

    def of(self, endpoints: Sequence[Endpoint]) -> list[str]:
        """Return endpoints with where they are, each encoded."""
        placement = self._cluster.placement
        return [
            f'{{"address":{encode(str(e.address))},"port":{"null" if e.port is None else e.port}'
            f"{self._place(placement(e.address))}"
            for e in endpoints
        ]

    def _place(self, placement: Placement) -> str:
        found = self._places.get(placement)
        if found is None:
            both = encode({"node": placement.node, "zone": placement.zone})
            found = self._places[placement] = f",{both[1:]}"
        return found


def _one(printed: str) -> str:
    if printed.startswith("["):
        address, _, port = printed[1:].partition("]")
    else:
        address, colon, port = printed.partition(":")
        port = colon + port
    return f'{{"address":{encode(address)},"port":{port[1:] or "null"}{_NOWHERE}'
