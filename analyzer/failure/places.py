"""Nodes and zones of endpoints, by their printed form, and what of their ServicePorts they carry.

A large cluster has a hundred thousand endpoints: creating an address object for each, only to look
it up, would take longer than everything else that is done with them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from analyzer.failure.incidence import Incidence, incidence
from analyzer.failure.ways import Ways
from analyzer.model.addresses import IPV4, address_from_text
from analyzer.model.cluster import Cluster, Placement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_DOTTED: Final = "%d.%d.%d.%d"


class EndpointPlaces:
    """Looks up lists of endpoints, which several routes may share."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[str, Placement] = {}
        for address, placement in cluster.placements.items():
            # An address without a node here may be in a network that the user gave a node.
            if placement.node is not None:
                # The result of str(), in two thirds of the time.
                is_ipv4 = address.version == IPV4
                text = _DOTTED % (*address.packed,) if is_ipv4 else str(address)
                self._known[text] = placement
        # By identity; the lists are kept, so that no other list gets their identity.
        self._of_list: dict[int, tuple[Sequence[str], Sequence[Placement]]] = {}

    def of(self, printed: Sequence[str]) -> Sequence[Placement]:
        """Return the placement of each of these endpoints, given as they are printed."""
        found = self._of_list.get(id(printed))
        if found is None:
            known = self._known
            hosts = [text.rpartition(":")[0] for text in printed]
            places = [known.get(host) for host in hosts]
            looked_up = [
                self._look_up(text) if place is None else place
                for text, place in zip(printed, places, strict=True)
            ]
            found = self._of_list[id(printed)] = printed, looked_up
        return found[1]

    def _look_up(self, printed: str) -> Placement:
        """Return the placement of an endpoint with an IPv6 address, or that no object places."""
        host, _, _ = printed.rpartition(":")
        if printed.startswith("["):
            host = printed[1:].partition("]")[0]
        host = host or printed
        address = address_from_text(host)
        assert address is not None, printed  # an endpoint is printed with its address
        found = self._known.get(host)
        if found is None:
            found = self._known[host] = self._cluster.placement(address)
        return found


def incidences(
    found: Iterable[Ways], cluster: Cluster, vantages: Collection[str] = ()
) -> tuple[Incidence, Incidence | None]:
    """Return how much each node carries of these, and each zone; None if no zone is known.

    `vantages` are the nodes whose rules are considered.
    """
    places, routes = EndpointPlaces(cluster), list(found)
    names = sorted(cluster.node_names)
    nodes = incidence(routes, names, lambda printed: [p.node for p in places.of(printed)])
    of_zone = sorted(cluster.zones)
    if not of_zone:
        return nodes, None
    zone_of = {name: cluster.zone_of(name) for name in vantages}
    return nodes, incidence(
        routes, of_zone, lambda printed: [p.zone for p in places.of(printed)], zone_of.get
    )
