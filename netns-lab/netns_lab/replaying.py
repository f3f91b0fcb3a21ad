"""The flows of a capture sent through the lab's rules, each from what represents its client.

Theory of operation
===================

Flows of one route leave together as long as no other comes in between; each has landed and was
answered when the call that sends it returns (`count`). A tag is the flow's own in all the run, so
that results are assigned to flows at the end. conntrack forgets flows in between if more of them
leave under the node's address than this has ports; what it knew of each is read before that.

A replay that is stopped has sent, of each route, the first flows: the others are left out of it.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from analyzer.kubeproxy.view import Endpoint
from analyzer.model.addresses import Address
from analyzer.model.measurement import EndpointCount, Measurement
from analyzer.model.probability import ALWAYS, NEVER, Bounds
from analyzer.model.value import replace
from netns_lab.arriving import NOTHING
from netns_lab.backend import SocketAddress
from netns_lab.captured import CapturedFlow, CapturedRoute
from netns_lab.captured_run import CapturedRun
from netns_lab.columns import RawSocketAddress, sockaddr_of
from netns_lab.count import BATCH
from netns_lab.errors import LabError
from netns_lab.layout import PacketLayout
from netns_lab.measure import MASQUERADE_ROOM, Progress, without_collector
from netns_lab.standing import Standing
from netns_lab.tracked import tracked

if TYPE_CHECKING:
    from netns_lab.experiment import Lab

#: Seconds to wait for what has not come yet, and the same where rules may have dropped it.
_PATIENCE: Final = 2.0
_FEW_MOMENTS: Final = 0.02
_POLL: Final = 0.001
#: Seconds after which it is asked whether to stop, while no flow is due.
_TICK: Final = 0.05
#: Seconds within which flows count as sent at one time.
_AT_ONE_TIME: Final = 0.001
#: Flows of one port that tags tell apart.
_MOST_OF_A_PORT: Final = 1 << 15
#: Seconds that conntrack keeps flows without answers or ends: longer than any run.
_KEPT: Final = 100_000
_TIMEOUTS: Final = (
    *("udp_timeout", "udp_timeout_stream"),
    *("tcp_timeout_syn_sent", "tcp_timeout_syn_recv", "tcp_timeout_close"),
)

#: The ends of a flow as the lab sends it: protocol, client and port, address and port.
FlowEnds = tuple[str, Address, int, Address, int]


@dataclass(frozen=True, slots=True)
class Witnesses:
    """What other ways of counting say of all flows together.

    Attributes:
        counters: packets by which the counters of rules and what was seen differ; None: not read.
        conntrack: flows that conntrack has elsewhere than they came to, or not; None: not read.
    """

    counters: int | None
    conntrack: int | None


class Replay:
    """Replays flows in one lab, once.

    Args:
        is_timed: they leave as far apart as in the capture.
    """

    def __init__(self, lab: Lab, standing: Sequence[Standing], *, is_timed: bool) -> None:
        self._lab = lab
        self._is_timed = is_timed
        self.runs = [
            CapturedRun(lab, each, numbers)
            for each, numbers in zip(standing, _numbers(standing), strict=True)
        ]
        heard: dict[PacketLayout, tuple[dict[int, RawSocketAddress], dict[int, bool]]] = {}
        for each in self.runs:
            each.share_in(*heard.setdefault(each.layout, ({}, {})))
        self._tracked: dict[FlowEnds, tuple[Address, int]] | None = {}
        self._pending: list[tuple[CapturedRun, int]] = []
        self._counted: Counter[SocketAddress] = Counter()
        self._dropped = 0
        self._seconds = 0.0
        self._is_stopped: Callable[[], bool] = lambda: False

    def go(
        self, progress: Progress | None, is_stopped: Callable[[], bool] = lambda: False
    ) -> list[tuple[CapturedFlow, CapturedRoute]]:
        """Send all flows, and return those that were not sent because `is_stopped` returned true.

        Raises:
            LabError: the node cannot be asked what it did.
        """
        lab, self._is_stopped = self._lab, is_stopped
        for name in _TIMEOUTS:
            lab.topology.node.set(f"net/netfilter/nf_conntrack_{name}", _KEPT)
        with lab.muted(), without_collector():
            lab.forget_flows()
            lab.backend.forget_clients()
            lab.backend.drawn()
            zero = time.monotonic()
            for due, each, first, count in self._batches():
                while self._is_timed and (wait := zero + due - time.monotonic()) > 0:
                    if is_stopped():
                        break
                    time.sleep(min(wait, _TICK))
                if is_stopped():
                    break
                if len(self._pending) + count > MASQUERADE_ROOM:
                    self._settle()
                    lab.forget_flows()
                each.send(first, count)
                self._pending += ((each, number) for number in range(first, first + count))
                if progress is not None:
                    progress(count)
            self._settle()
            self._seconds = time.monotonic() - zero
            self._counted = lab.backend.drawn()
            # What hears is shared by all of a protocol.
            hearing = {each.layout: each for each in self.runs}
            self._dropped = sum(each.dropped() for each in hearing.values())
        unsent = [flow for each in self.runs for flow in each.cut()]
        self.runs = [each for each in self.runs if each.standing.flows]
        return unsent

    def _batches(self) -> Iterator[tuple[float, CapturedRun, int, int]]:
        """Give when to send, and which flows."""
        if not self._is_timed:
            for each in self.runs:
                flows = len(each.standing.flows)
                for first in range(0, flows, BATCH):
                    yield 0.0, each, first, min(BATCH, flows - first)
            return
        ways = [list(_times(at, each.standing)) for at, each in enumerate(self.runs)]
        held: tuple[float, int, int, int] | None = None
        begun: float | None = None
        for sent, at, number in heapq.merge(*ways):
            begun = sent if begun is None else begun
            due = sent - begun
            if held is not None:
                since, of, first, count = held
                if of == at and due - since < _AT_ONE_TIME and count < BATCH:
                    held = since, of, first, count + 1
                    continue
                yield since, self.runs[of], first, count
            held = due, at, number, 1
        if held is not None:
            yield held[0], self.runs[held[1]], held[2], held[3]

    def _settle(self) -> None:
        """Wait for what is late, which nothing is as a rule, and ask conntrack."""
        waiting = [(each, n) for each, n in self._pending if n not in each.kept_back]
        may_end = any(each.ended.upper != NEVER for each, _ in waiting)
        deadline = time.monotonic() + (_FEW_MOMENTS if may_end else _PATIENCE)
        while waiting := [(each, number) for each, number in waiting if each.waits(number)]:
            if time.monotonic() > deadline:
                break
            time.sleep(_POLL)
            for each in dict.fromkeys(each for each, _ in waiting):
                each.drain()
        if self._tracked is not None:
            self._ask_conntrack({each.layout.version for each, _ in self._pending})
        self._pending.clear()

    def _ask_conntrack(self, versions: set[int]) -> None:
        assert self._tracked is not None
        for version in sorted(versions):
            try:
                found = tracked(self._lab.topology.node, version)
            except LabError:
                if not self._is_stopped():
                    raise
                found = None  # a terminal ends all programs at once
            if found is None:  # the report says that it was not read
                self._tracked = None
                return
            self._tracked.update(found)

    # --- what came of it -----------------------------------------------------------

    def measurements(self) -> Iterator[Measurement]:
        """Give what was counted of each route."""
        dropped = self._dropped
        for each in self.runs:
            yield each.measured(dropped, self._seconds)
            dropped = 0  # told once

    def witnesses(self) -> Witnesses:
        """Return by how much other ways of counting differ from what was seen."""
        return Witnesses(self._counter_difference(), self._conntrack_difference())

    def _counter_difference(self) -> int | None:
        """Return the difference of all routes together: endpoints are of several."""
        landed: Counter[SocketAddress] = Counter()
        lost: set[SocketAddress] = set()
        for each in self.runs:
            landed += each.landed()
            lost |= each.lost()
        found = tuple(
            EndpointCount(
                address=str(sockaddr[0]),
                port=sockaddr[1],
                node=None,
                dead=False,
                predicted=NOTHING,
                landed=landed[sockaddr],
                counted=self._counted[sockaddr],
                answered=0,
                refused=0,
                lost=Bounds(NEVER, ALWAYS) if sockaddr in lost else NOTHING,
            )
            for sockaddr in {*landed, *self._counted}
        )
        some = [each.measured(0, 0) for each in self.runs]
        return replace(
            some[0],
            flows=sum(len(each.standing.flows) for each in self.runs),
            endpoints=found,
            passed=sum(each.passed for each in some),
            rejected=sum(each.rejected for each in some),
        ).counter_difference

    def _conntrack_difference(self) -> int | None:
        if self._tracked is None:
            return None
        return sum(
            not self._agrees(each, number)
            for each in self.runs
            for number in range(len(each.standing.flows))
        )

    def _agrees(self, each: CapturedRun, number: int) -> bool:
        assert self._tracked is not None
        sockaddr, answered = each.fate(number)
        if sockaddr is None:  # what rules end conntrack may have known, or never have seen
            return True
        flow, address = each.standing.flows[number]
        ends = each.layout.protocol, address, flow.port, *each.to
        known = self._tracked.get(ends)
        if known is None:
            return answered is False and self._resets(each, sockaddr_of(sockaddr))
        return (int(known[0]), known[1]) == sockaddr_of(sockaddr)

    def _resets(self, each: CapturedRun, sockaddr: SocketAddress) -> bool:
        """Return whether a dead endpoint resets connections, which conntrack then forgets.

        Source: Linux, net/netfilter/nf_conntrack_proto_tcp.c, ``nf_conntrack_tcp_packet``.
        """
        kind = self._lab.kind_of(Endpoint(type(each.to[0])(sockaddr[0]), sockaddr[1]))
        return each.layout.protocol == "tcp" and (kind is None or kind.name == "process")


def _times(route: int, standing: Standing) -> Iterator[tuple[float, int, int]]:
    """Give when each flow of a route was captured, the route's number, and the flow's."""
    for number, (flow, _) in enumerate(standing.flows):
        yield flow.at, route, number


def _numbers(standing: Sequence[Standing]) -> Iterator[list[int]]:
    """Give for each flow a number that no other of its protocol, version and port has.

    Raises:
        LabError: tags have no room for so many of one port.
    """
    used: Counter[tuple[str, int, int]] = Counter()
    for each in standing:
        protocol = each.of.service.protocol
        numbers = []
        for flow, address in each.flows:
            key = protocol, address.version, flow.port
            numbers.append(used[key])
            used[key] += 1
            if used[key] > _MOST_OF_A_PORT:
                raise LabError(
                    f"more than {_MOST_OF_A_PORT:,} flows of the capture have port {flow.port}: "
                    "replay a part of it, for example by --service"
                )
        yield numbers
