"""The device and next hop of the node's packets, as far as its routes show them.

Source: ip-route(8); of policy routing, only the main table is considered.
"""

from __future__ import annotations

from analyzer.model.addresses import WIDTHS, Address, Network
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:  # few dumps need regions
    from analyzer.model.intervals import Interval, Intervals

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

    def by_device(self, version: int) -> tuple[tuple[str, Intervals], ...]:
        """Return the devices by which packets leave, each with the addresses it leads to."""
        from analyzer.model.intervals import everything, joined, span

        held: dict[int, dict[int, KernelRoute]] = {}
        first, last = everything(version)
        starts = {first}
        for route in self.routes:
            if route.network.version == version:
                of_length = held.setdefault(route.network.prefixlen, {})
                start, end = span(route.network)
                starts |= {start, end + 1}
                if start not in of_length or route.metric < of_length[start].metric:
                    of_length[start] = route
        order = sorted(each for each in starts if each <= last)
        found: dict[str, list[Interval]] = {}
        for start, following in zip(order, [*order[1:], last + 1], strict=True):
            device = _device_of(start, version, held)
            if device is not None:
                found.setdefault(device, []).append((start, following - 1))
        return tuple((device, joined(parts)) for device, parts in found.items())


def _device_of(address: int, version: int, held: dict[int, dict[int, KernelRoute]]) -> str | None:
    """Return the device of the longest prefix, by length and first address of the network."""
    for length in sorted(held, reverse=True):
        width = WIDTHS[version] - length
        route = held[length].get(address >> width << width)
        if route is not None:
            return route.device
    return None
