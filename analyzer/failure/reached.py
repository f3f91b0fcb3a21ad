"""Whether the node can still reach an endpoint: neighbours that answer, and routes.

Evidence against a next hop applies to everything behind it. It is a sign and no proof: the address
may have been queried long ago, and a route may be in a table that was not given.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from analyzer.model.addresses import Address
from analyzer.model.cluster import Cluster
from analyzer.model.routing import Routes


class Connectivity:
    """What is known of one node's connectivity.

    Args:
        lost: addresses that did not answer ARP or neighbour discovery.
        routes: the node's; None if they are not known.
        places: all endpoints' addresses: those with routes of their own show who should have one.
    """

    def __init__(
        self,
        lost: Collection[Address] = (),
        routes: Routes | None = None,
        cluster: Cluster | None = None,
        places: Iterable[Address] = (),
    ) -> None:
        self._lost = frozenset(lost)
        self._routes = routes or Routes()
        self._cluster = cluster or Cluster()
        # If other nodes' pods have routes of their own, one without has lost it.
        self._routed = {
            each.version
            for each in places
            if (to := self._routes.to(each)) is not None
            and to.hop is not None
            and not to.is_default
        }

    def why_not(self, address: Address) -> str | None:
        """Return the evidence that an address cannot be reached; None if there is none."""
        if address in self._lost:
            return "no neighbour: it did not answer ARP or ND"
        route = self._routes.to(address)
        if route is not None and route.is_closed:
            return f"no route: {route.network} is closed"
        if route is not None and route.hop in self._lost:
            return f"no neighbour: its next hop {route.hop} did not answer ARP or ND"
        name = self._cluster.placement(address).node
        node = self._cluster.nodes.get(name) if name is not None else None
        gone = [each for each in node.addresses if each in self._lost] if node is not None else []
        if gone:
            return f"no neighbour: its node's {gone[0]} did not answer ARP or ND"
        lacks = route is None or route.is_default
        if (
            self._routes.routes
            and lacks
            and address.version in self._routed
            and self._is_pod(address)
        ):
            return "no route to it, unlike to other pods"
        return None

    def _is_pod(self, address: Address) -> bool:
        """Return whether it is a pod's address: others have no route of their own."""
        nodes = self._cluster.nodes.values()
        networks = (network for node in nodes for network in node.pod_networks)
        return any(each.version == address.version and address in each for each in networks)
