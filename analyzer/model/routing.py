"""The device and next hop of the node's packets, as far as its routes show them.

Source: ip-route(8); of policy routing, only the main table is considered.
"""

from __future__ import annotations

from analyzer.model.addresses import Address, Network
from analyzer.model.value import value

LOOPBACK = "lo"


@value
class KernelRoute:
    """A network and the device by which packets to it leave, None if that is not known.

    Of equal networks the one with the least metric counts.

    Attributes:
        hop: the next hop; None if the network is on the link, or the device needs none.
        is_closed: it forwards nothing: unreachable, blackhole, prohibit, or its link is down.
    """

    network: Network
    device: str | None
    metric: int = 0
    hop: Address | None = None
    is_closed: bool = False

    @property
    def is_default(self) -> bool:
        """Whether it is a default route."""
        return self.network.prefixlen == 0


@value
class Routes:
    """The node's routes; empty if they are not known."""

    routes: tuple[KernelRoute, ...] = ()

    def to(self, address: Address) -> KernelRoute | None:
        """Return the route to `address`; None if there is none, or they are not known."""
        fitting = [
            route
            for route in self.routes
            if route.network.version == address.version and address in route.network
        ]
        return max(fitting, key=lambda r: (r.network.prefixlen, -r.metric), default=None)

    def device(self, address: Address | None) -> str | None:
        """Return the device by which packets to `address` leave; None if not known."""
        best = None if address is None else self.to(address)
        return None if best is None else best.device
