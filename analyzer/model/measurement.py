"""What the lab counted: enough to judge it again later, without root and without the lab."""

from __future__ import annotations

from analyzer.model.probability import NEVER, Bounds
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


@value(kw_only=True)
class EndpointCount:
    """One endpoint of a route.

    Attributes:
        predicted: the share of new flows that the analysis says arrive.
        lost: the share, of all flows, that is sent there and that rules behind the DNAT drop or
            reject; of these `counted` tells too.
        landed: flows whose first packet arrived at the endpoint's door.
        counted: packets that the endpoint's DNAT rule counted or, of a ruleset of nft, whose
            rules do not count, a rule of the lab's own behind them; None where that was not read.
        answered: of the flows that landed, those whose client got an answer.
        refused: those whose client got a refusal.
        in_flight: of the flows that landed, those without an answer that had not had theirs yet
            when something died or rules were replaced: none is owed to them.
        death: how it is dead, or slow, where that was given: ``reject``, ``slow=200``.
    """

    address: str
    port: int
    node: str | None
    dead: bool
    predicted: Bounds
    landed: int
    counted: int | None
    answered: int
    refused: int
    in_flight: int = 0
    death: str | None = None
    lost: Bounds = Bounds(NEVER, NEVER)

    @property
    def name(self) -> str:
        """Address and port, as people write them."""
        return (
            f"[{self.address}]:{self.port}"
            if ":" in self.address
            else f"{self.address}:{self.port}"
        )


#: Protocols whose endpoints answer in the lab; of SCTP it is told who gets the INIT, and no more.
ANSWERED: Final = frozenset({"tcp", "udp"})


@value(kw_only=True)
class ClientExit:
    """Runs of a program that ended alike.

    Attributes:
        status: the exit status; negative: the signal that ended it.
        says: the last line that one of them printed.
        seconds: what the fastest, the median and the slowest of them took.
    """

    status: int
    runs: int
    says: str
    seconds: tuple[float, float, float]


@value(kw_only=True)
class ClientTrial:
    """A real program, run many times against one address.

    Attributes:
        command: what was run each time.
        target: what the address is: a living pod, a ServicePort.
        family: of the address, as nft names it: ``ip`` or ``ip6``.
        succeeds: the predicted share of runs that succeed; None: nobody said what it does.
        failure_seconds: how long each run that failed took, in ascending order.
        failure_takes: the predicted seconds, at least and at most; None: none is to fail.
    """

    command: str
    target: str
    family: str
    runs: int
    succeeded: int
    succeeds: Bounds | None
    failure_seconds: tuple[float, ...]
    failure_takes: tuple[float, float] | None = None
    exits: tuple[ClientExit, ...] = ()


@value(kw_only=True)
class Measurement:
    """One experiment: new flows to one frontend of a ServicePort from one kind of source.

    Attributes:
        flows: how many were sent.
        passed: flows that left the node with their destination unchanged.
        ended: the predicted share of flows that rules reject or drop.
        rejected: flows that came nowhere, and whose sender was told so.
        ended_by: the rules that count such flows as they are: packets and the rule's text. None
            where that was not read, or is not counted.
        repeated: of a Service with session affinity, further flows of the same clients, which are
            not among `flows`.
        strayed: those of them that came to another endpoint than the client's first.
        duplicates: arrivals of a flow that had arrived before.
        dropped_by_capture: packets that the capture's sockets had no room for.
        seconds: from the first packet to the last one counted.
    """

    service: str
    protocol: str
    frontend: str
    source: str
    node: str | None
    flows: int
    endpoints: tuple[EndpointCount, ...]
    passed: int
    duplicates: int
    dropped_by_capture: int
    seconds: float
    kernel: str
    backend: str
    ended: Bounds = Bounds(NEVER, NEVER)
    rejected: int = 0
    ended_by: tuple[tuple[int, str], ...] | None = None
    repeated: int = 0
    strayed: int = 0

    @property
    def unaccounted(self) -> int:
        """Flows that were sent and seen nowhere; where rules drop flows, these are among them."""
        return self.flows - self.passed - self.rejected - sum(e.landed for e in self.endpoints)

    @property
    def counter_difference(self) -> int | None:
        """Packets that the rules counted and the capture did not, or the other way round.

        Those that rules behind the DNAT drop or reject are no difference, as far as so many were.
        """
        difference = on_the_way = 0
        for each in self.endpoints:
            if each.counted is None:
                return None
            more = each.counted - each.landed
            if each.lost.upper and more > 0:
                on_the_way += more
            else:
                difference += abs(more)
        return difference + max(0, on_the_way - self.rejected - self.unaccounted)
