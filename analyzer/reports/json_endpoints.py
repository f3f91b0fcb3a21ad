"""The endpoints of a ServicePort as JSON, each once, with its node and zone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from analyzer.kubeproxy.view import Endpoint
from analyzer.model.cluster import Cluster
from analyzer.reports.json_values import column, encode

#: Of what endpoints of IPv4 with a port are printed with, one below the other.
_OF_IPV4: Final = re.compile(r"[0-9.:\n]++")
#: What follows the ports if the place of endpoints is not known.
_NOWHERE: Final = '"node":null,"zone":null,"pod":null}'


class EndpointTexts:
    """Encodes endpoints: address, port, node, zone and pod."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def of(self, endpoints: Sequence[Endpoint]) -> list[str]:
        """Return endpoints with their node and zone, each encoded."""
        told = (self._told(each) for each in endpoints)
        return [encode(dict(zip(_FIELDS, each, strict=True))) for each in told]

    def columns(self, endpoints: Sequence[Endpoint]) -> str:
        """Return endpoints with node and zone, as columns (see `column`)."""
        rows = [self._told(each) for each in endpoints]
        addresses, *others = map(list, zip(*rows, strict=True)) if rows else ([] for _ in _FIELDS)
        told: list[Any] = [addresses, *map(column, others)]
        return encode(dict(zip(_FIELDS, told, strict=True)))

    def columns_of_printed(self, printed: Sequence[str]) -> str:
        """Return what `columns` does, for endpoints whose nodes are not known."""
        together = "\n".join(printed)
        if _OF_IPV4.fullmatch(together) and together.count(":") == len(printed):
            # All at once: a call for each would take most of the time of a large document.
            parts = together.replace(":", "\n").split("\n")
            addresses, ports = '","'.join(parts[::2]), parts[1::2]
            same = ports.count(ports[0]) == len(ports)
            port = ports[0] if same else f"[{','.join(ports)}]"
            return f'{{"address":["{addresses}"],"port":{port},{_NOWHERE}'
        apart = [*map(_parts, printed)]
        told = encode([address for address, _ in apart]), encode(column([p for _, p in apart]))
        return f'{{"address":{told[0]},"port":{told[1]},{_NOWHERE}'

    def _told(
        self, endpoint: Endpoint
    ) -> tuple[str, int | None, str | None, str | None, str | None]:
        place = self._cluster.placement(endpoint.address)
        pod = self._cluster.pods.of(endpoint.address, endpoint.port)
        return str(endpoint.address), endpoint.port, place.node, place.zone, pod


_FIELDS: Final = ("address", "port", "node", "zone", "pod")


def _parts(printed: str) -> tuple[str, int | None]:
    if printed.startswith("["):
        address, _, port = printed[1:].partition("]")
        port = port[1:]
    else:
        address, _, port = printed.partition(":")
    return address, int(port) if port else None
