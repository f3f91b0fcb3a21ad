"""By which device and next hop the node sends a packet, as far as its routes tell.

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

    Attributes:
        hop: the next hop; None: what is in the network is a neighbour, or the device knows.
        is_closed: it sends nothing on: unreachable, blackhole, prohibit, or its link is down.
    """

    network: Network
    device: str | None
    metric: int = 0
    hop: Address | None = None
    is_closed: bool = False

    @property
    def is_default(self) -> bool:
        """Whether it is a route to everything."""
        return self.network.prefixlen == 0


@value
class Routes:
    """The node's routes; none: they are not known."""

    routes: tuple[Route, ...] = ()

    def to(self, address: Address) -> Route | None:
        """Return the route to `address`; None: there is none, or they are not known."""
        fitting = [
            route
            for route in self.routes
            if route.network.version == address.version and address in route.network
        ]
        return max(fitting, key=lambda r: (r.network.prefixlen, -r.metric), default=None)

    def device(self, address: Address | None) -> str | None:
        """Return the device by which packets to `address` leave; None: not known."""
        best = None if address is None else self.to(address)
        return None if best is None else best.device
