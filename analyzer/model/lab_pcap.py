"""The outcome of replaying the flows of a capture through a node's rules."""

from __future__ import annotations

from analyzer.model.probability import Bounds
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: How a flow may end: at a living endpoint or a dead one, by a rule that rejects it, drops it, or
#: does either (ended: what the node sends is kept back by both), or with its destination unchanged.
OUTCOMES: Final = ("endpoint", "dead-endpoint", "rejected", "dropped", "ended", "unchanged")


@value(kw_only=True)
class ReplayedFlow:
    """A flow of the capture, and where it arrived in the lab.

    Attributes:
        packet: the number of its first packet in the capture, from 1.
        at: seconds from the first replayed flow to this one, as captured.
        client: its source address, as captured; its port was kept.
        stands_as: the address that it was sent from in the lab.
        to: address and port, as captured.
        outcome: one of `OUTCOMES`.
        endpoint: where it arrived; None if at no endpoint.
        answered: whether its client was answered; False if it was refused; None if neither, or if
            the node's own stack did not send it, where nothing is heard of a refusal.
        predicted: the predicted share of the route's new flows with this outcome.
        repeated: session affinity keeps it at the endpoint of its client's first flow.
    """

    packet: int
    at: float
    client: str
    client_port: int
    stands_as: str
    to: str
    protocol: str
    service: str
    frontend: str
    source: str
    outcome: str
    endpoint: str | None
    answered: bool | None
    predicted: Bounds
    repeated: bool = False


@value(kw_only=True)
class StandIn:
    """A client of the capture, its kind of source, and the lab address that represents it.

    Attributes:
        flows: how many of its flows were replayed.
    """

    client: str
    source: str
    stands_as: str
    flows: int


@value(kw_only=True)
class PassedOver:
    """Packets that were not replayed.

    Attributes:
        judged: nothing is missing without them; False if they begin flows to Services of the dump
            that are not judged, or may begin such flows.
        examples: destinations of some of them.
    """

    reason: str
    packets: int
    judged: bool = True
    examples: tuple[str, ...] = ()
