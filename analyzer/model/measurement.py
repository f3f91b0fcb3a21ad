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
        predicted: the share of new flows that should arrive, according to the analysis.
        lost: the share, of all flows, that is sent there and that rules after the DNAT drop or
            reject; `counted` includes these.
        landed: flows whose first packet arrived at the endpoint.
        counted: packets that the endpoint's DNAT rule counted or, for nft rulesets, whose rules
            have no counters, a rule of the lab's own after them; None if that was not read.
        unanswered: the share, of the flows that arrive there, whose answers rules drop or reject.
        answered: of the flows that landed, those whose client got an answer.
        refused: those whose client got a refusal.
        in_flight: of the flows that landed, those that were still unanswered when something died
            or rules were replaced: they need no answer.
        death: how it is dead, or slow, if a kind was given: ``reject``, ``slow=200``.
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
    unanswered: Bounds = Bounds(NEVER, NEVER)

    @property
    def owed(self) -> int:
        """Flows that landed and whose client received nothing."""
        return self.landed - self.answered - self.refused

    @property
    def name(self) -> str:
        """Address and port, as people write them."""
        return (
            f"[{self.address}]:{self.port}"
            if ":" in self.address
            else f"{self.address}:{self.port}"
        )


#: Protocols whose endpoints answer in the lab; for SCTP only the arrival of the INIT is known.
ANSWERED: Final = frozenset({"tcp", "udp"})


@value(kw_only=True)
class ClientExit:
    """Runs of a program that ended alike.

    Attributes:
        status: the exit status; if negative, the signal that ended it.
        says: the last line that one of them printed.
        seconds: durations of the fastest, the median and the slowest of them.
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
        succeeds: the predicted share of runs that succeed; None if nothing is predicted.
        failure_seconds: how long each failed run took, in ascending order.
        failure_takes: the predicted range of these seconds; None if no run should fail.
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
        rejected: flows that arrived nowhere, and whose sender got an error.
        ended_by: the rules that ended such flows, by their counters: packets and the rule's text.
            None if these were not read, or some rules have no counters. The text of another
            node's rule begins with that node.
        ended_at: where no counters tell, the rule that ended one such flow, as the kernel traced
            it; None if it was not traced, or no rule that is loaded ended it.
        repeated: for a Service with session affinity, further flows of the same clients, which are
            not among `flows`; those that arrived somewhere.
        repeated_ended: those that arrived nowhere.
        strayed: such flows that reached another endpoint than the client's first.
        duplicates: arrivals of a flow that had arrived before.
        dropped_by_capture: packets that did not fit into the capture's buffers.
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
    ended_at: str | None = None
    repeated: int = 0
    repeated_ended: int = 0
    strayed: int = 0

    @property
    def unaccounted(self) -> int:
        """Flows that were sent and seen nowhere, including those that rules drop."""
        return self.flows - self.passed - self.rejected - sum(e.landed for e in self.endpoints)

    @property
    def ended_anywhere(self) -> int:
        """Flows that arrived nowhere, further ones of the same clients among them."""
        return self.rejected + self.unaccounted + self.repeated_ended

    @property
    def counter_difference(self) -> int | None:
        """Packets that the rules counted and the capture did not, or vice versa.

        Those that rules after the DNAT drop or reject do not count, as far as there were so many.
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
        return difference + max(0, on_the_way - self.ended_anywhere)
