"""Through which next hops a node reaches networks."""

from __future__ import annotations

from analyzer.model.addresses import Address, Network
from analyzer.model.value import value


@value
class Way:
    """A route of the node.

    Attributes:
        hop: None: what is in the network is a neighbour, or the device knows.
        is_closed: it sends nothing on: unreachable, blackhole, prohibit, or its link is down.
    """

    network: Network
    hop: Address | None = None
    is_closed: bool = False
