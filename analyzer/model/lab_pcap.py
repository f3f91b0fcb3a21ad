"""The outcome of replaying the flows of a capture through a node's rules."""

from __future__ import annotations

from analyzer.model.probability import Bounds
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Where a flow may end: at an endpoint that lives or one that is dead, by a rule that rejects or
#: drops it, or nowhere of these: its destination was not changed.
OUTCOMES: Final = ("endpoint", "dead-endpoint", "rejected", "dropped", "unchanged")


@value(kw_only=True)
class ReplayedFlow:
    """A flow of the capture, and where it landed in the lab.

    Attributes:
        packet: the number of its first packet in the capture, from 1.
        at: seconds from the first flow that was replayed to this one, as captured.
        client: who sent it, as captured; its port was kept.
        stands_as: the address that it was sent from in the lab.
        to: address and port, as captured.
        outcome: of `OUTCOMES`.
        endpoint: where it landed; None: at none.
        answered: whether its client was answered; False: it was refused; None: neither.
        predicted: the share of the route's new flows that end so.
        repeated: session affinity keeps it where its client's first flow came to.
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
    """A client of the capture, what it is to the node, and the address that stands for it.

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
        judged: nothing is missing without them; False: they begin flows to Services of the dump
            of which nothing is said.
        examples: where some of them were going.
    """

    reason: str
    packets: int
    judged: bool = True
    examples: tuple[str, ...] = ()
