"""By which device the node sends a packet, as far as it is known; not the next hop.

Source: ip-route(8); of its policy routing only the main table is looked at.
"""

from __future__ import annotations

from analyzer.model.addresses import Address, Network
from analyzer.model.value import value

LOOPBACK = "lo"


@value
class Route:
    """A network and the device by which packets to it leave, None if that is not known.

    Of equal networks the least metric counts.
    """

    network: Network
    device: str | None
    metric: int = 0


@value
class Routes:
    """The node's routes; none: they are not known."""

    routes: tuple[Route, ...] = ()

    def device(self, address: Address | None) -> str | None:
        """Return the device by which packets to `address` leave; None: not known."""
        if address is None:
            return None
        fitting = [
            route
            for route in self.routes
            if route.network.version == address.version and address in route.network
        ]
        best = max(fitting, key=lambda r: (r.network.prefixlen, -r.metric), default=None)
        return None if best is None else best.device
