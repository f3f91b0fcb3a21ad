"""Routes measured in turn: their flows are sent one route after the other, and counted together.

The kernel copies all rules of a table to give their counters, which takes 35 ms for 30,000. So
they are read once for many routes. Of these no two have an endpoint in common, so that it is known
whose flows a rule has counted.

Nothing else may send flows or change rules meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from analyzer.kubeproxy.view import Endpoint, Route, ServicePort, Source
from analyzer.model.measurement import Measurement
from analyzer.model.value import replace
from netns_lab.arriving import sockaddr_of_endpoint
from netns_lab.backend import SocketAddress
from netns_lab.backends import backend_of
from netns_lab.ending import with_rule
from netns_lab.errors import NotMeasuredError
from netns_lab.measure import CONNTRACK_ROOM, Progress, RouteRun
from netns_lab.reasons import INTERRUPTED

if TYPE_CHECKING:
    from netns_lab.experiment import Lab

#: Runs that wait to be counted together: each has some memory.
_MOST: Final = 256


@dataclass(slots=True)
class Result:
    """The measurements of one route.

    Attributes:
        why_not: why it is not measured, or only in part; None: it is.
    """

    measurements: list[Measurement] = field(default_factory=list)
    why_not: str | None = None


def in_turn(
    lab: Lab,
    wanted: Sequence[tuple[ServicePort, Route, int]],
    progress: Progress | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
    *,
    in_part: bool = True,
) -> list[Result]:
    """Send so many flows of each route, and account for each; the results are in that order.

    Once `is_stopped` returns true, no more flows are sent, and those that were are counted; a route
    of which only some were sent has measurements if `in_part`.

    Raises:
        LabError: the lab cannot replay flows.
    """
    turns = _Turns(lab, len(wanted), progress, is_stopped, in_part)
    ends = {id(service): _ends_of(service.endpoints) for service, _, _ in wanted}
    left = [_Sender(at, ends[id(each[0])], lab.runs(*each)) for at, each in enumerate(wanted)]
    with lab.muted():
        lab.drawn()  # what was counted before
        while left and not is_stopped():
            left = [each for each in left if is_stopped() or turns.take(each)]
            turns.count()
    for each in left:
        turns.cut(each)
    return turns.found


@dataclass(slots=True)
class _Sender:
    """A route that is measured: its number, its Service's endpoints, and the runs still to send."""

    at: int
    ends: frozenset[SocketAddress]
    runs: Iterator[RouteRun]


@dataclass(slots=True)
class _Turns:
    """Runs that have been sent and not been counted yet."""

    _lab: Lab
    _routes: int
    _progress: Progress | None
    _is_stopped: Callable[[], bool]
    _in_part: bool
    found: list[Result] = field(init=False)
    _waiting: list[tuple[int, RouteRun]] = field(default_factory=list)
    #: Endpoints to which their flows may have come.
    _taken: set[SocketAddress] = field(default_factory=set)
    #: Flows that the node may know; at first, any number.
    _known: int = CONNTRACK_ROOM

    def __post_init__(self) -> None:
        self.found = [Result() for _ in range(self._routes)]

    def cut(self, sender: _Sender) -> None:
        """Say of a route that it was interrupted, unless there are no more runs to send."""
        found = self.found[sender.at]
        if found.measurements:
            try:
                if next(sender.runs, None) is None:
                    return
            except NotMeasuredError:  # it would have come to this
                pass
        self._leave_out(sender.at, INTERRUPTED)

    def _leave_out(self, at: int, why: str) -> None:
        self.found[at].why_not = why
        if why != INTERRUPTED or not self._in_part:
            self.found[at].measurements.clear()

    def take(self, sender: _Sender) -> bool:
        """Send the next run of a route unless it has to wait; return whether there may be more."""
        if not self._taken.isdisjoint(sender.ends):
            return True
        run: RouteRun | None = None
        try:
            run = next(sender.runs, None)
            if not (run is None or self._send(run)):
                self._leave_out(sender.at, INTERRUPTED)
        except NotMeasuredError as error:
            self._leave_out(sender.at, str(error))
        if run is None:
            return False
        # Also if it failed: rules may have counted some of its flows.
        self._taken |= sender.ends
        self._waiting.append((sender.at, run))
        if len(self._waiting) == _MOST:
            self.count()
        return run.of[1].source is Source.HAIRPIN and self.found[sender.at].why_not is None

    def _send(self, run: RouteRun) -> bool:
        """Send the flows of a run, and return whether all were sent."""
        service, route, sender = run.of
        forgets = self._known + run.flows_known > CONNTRACK_ROOM
        self._known = run.flows_known if forgets else self._known + run.flows_known
        behind = self._lab.behind
        sends = nullcontext() if sender is None else behind.sending(service, route, sender)
        with sends:
            return run.replay(self._progress, forgets=forgets, is_stopped=self._is_stopped)

    def count(self) -> None:
        """Read what rules have counted, and account for the runs that wait for it."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        self._taken = set()
        self._known = CONNTRACK_ROOM
        drawn = self._lab.drawn()
        for (at, run), counted in zip(
            waiting, parted(drawn, [run.came_to() for _, run in waiting]), strict=True
        ):
            found = self.found[at]
            if found.why_not is None or (found.why_not == INTERRUPTED and self._in_part):
                found.measurements.append(self._measured(run, counted))

    def _measured(self, run: RouteRun, counted: Counter[SocketAddress]) -> Measurement:
        service, route, sender = run.of
        found = run.measured_with(counted)
        node = None if sender is None else self._lab.behind.node_of(sender)
        if node is not None:
            found = replace(found, node=node.name, backend=backend_of(node.node.given.ruleset))
        return with_rule(found, self._lab, service, route, sender)


def _ends_of(endpoints: Sequence[Endpoint]) -> frozenset[SocketAddress]:
    return frozenset(sockaddr_of_endpoint(each) for each in endpoints if each.port is not None)


def parted(
    counted: Mapping[SocketAddress, int], came: Sequence[Mapping[SocketAddress, int]]
) -> list[Counter[SocketAddress]]:
    """Return what rules have counted of each run; `came` is how many of its flows came where.

    Endpoints to which flows of a run may come are among the latter, with 0. What rules have counted
    elsewhere may be of any run, and counts as a difference of each; also where flows of several
    came, unless as many as were counted.
    """
    runs = range(len(came))
    whose: dict[SocketAddress, list[int]] = {}
    for run in runs:
        for end in came[run]:
            whose.setdefault(end, []).append(run)
    found: list[Counter[SocketAddress]] = [Counter() for _ in runs]
    for end, packets in counted.items():
        of = whose.get(end, runs)
        as_many = end in whose and sum(came[run][end] for run in of) == packets
        for run in of:
            found[run][end] = came[run][end] if as_many else packets
    return found
