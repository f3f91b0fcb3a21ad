"""New flows at a steady rate while things die, live again, and rules are replaced.

Theory of operation
===================

Flows leave some milliseconds apart. Each has landed when the call that sends it returns, so that
who is dead and which rules are in force when it is sent decides where it goes; only answers of what
is slow come later. A death takes a moment in which no flow is sent. Rules are replaced by a program
that runs beside us: flows that are sent from its start to its end may meet the old rules or the
new, and are counted as a phase of their own, which each endpoint may have any share of that is
between both. To flows that were sent and not yet answered when something died no answer is owed
any more; they are of the phase in which they were sent, and told apart.

What the kernel holds after a change is read by a program beside us too, and compared at the end.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from analyzer.kubeproxy.view import Endpoint, Route, ServicePort
from analyzer.model.addresses import Address
from analyzer.model.lab_phases import Event
from analyzer.model.measurement import ANSWERED, Measurement
from analyzer.model.probability import Bounds, capped_sum
from analyzer.semantics.base_chains import Rules
from netns_lab.arriving import NOTHING, Arriving, arriving, door_of_endpoint, either, hull
from netns_lab.command import Meanwhile
from netns_lab.connections import Connections
from netns_lab.count import RawDoor, door_of, raw_door, tag_of
from netns_lab.deaths import Death, Kind
from netns_lab.errors import LabError
from netns_lab.experiment import Lab
from netns_lab.interrupting import interruptible
from netns_lab.measure import Progress, RouteRun
from netns_lab.schedule import Planned, Schedule

#: Flows of one call, and the seconds from one to the next.
_AT_ONCE: Final = 64
_TICK: Final = 0.01
#: Seconds for which answers are waited for at the end.
_PATIENCE: Final = 2.0
_UNKNOWN: Final = Arriving({}, {}, NOTHING)


@dataclass(slots=True)
class Span:
    """Flows that were sent while nothing changed, or while something did.

    Attributes:
        first, last: numbers of flows, the last one not among them.
        in_flight: those of its flows that were not answered when it ended.
        route: of the dump in force; None: it does not tell of it.
        lost: the part of them that is to be without an answer.
        at_event: it is a change.
    """

    begins: float
    first: int
    dead: dict[Endpoint, Kind]
    names: tuple[str, ...]
    rules: str
    route: Route | None
    expected: Arriving
    lost: Bounds
    at_event: bool = False
    ends: float = 0.0
    last: int = 0
    in_flight: frozenset[int] = frozenset()


class Phased(RouteRun):
    """The flows of one route, in the order in which they are sent."""

    def __init__(self, lab: Lab, service: ServicePort, route: Route, flows: int) -> None:
        super().__init__(lab, service, route, flows, None)
        if flows > self._flows.room:
            raise LabError(
                f"{flows:,} new flows are more than the node can distinguish at one time: at most "
                f"{self._flows.room:,}; lower --rate or --for"
            )
        self.sent = 0
        self.protocol = service.protocol
        self._kinds: dict[Endpoint, Kind] = {}

    def tick(self, count: int) -> None:
        """Send so many, and hear what has come."""
        if count:
            self._send(self.sent, count)
            self.sent += count
        else:
            self._drain()

    @property
    def to(self) -> tuple[Address, int]:
        """The address and port that flows go to."""
        return self._to

    def arriving(self, route: Route) -> Arriving:
        """Return what is predicted of the same flows where another dump is in force."""
        return arriving(route, self._lab.beyond(self._client))

    def endpoint_of(self, door: RawDoor) -> Endpoint:
        """Return the endpoint of an address and port as they stand in memory."""
        address, port = door_of(door)
        return Endpoint(type(self._to[0])(address), port)

    def dropped(self) -> int:
        """Return how many packets the captures had no room for."""
        return self._dropped()

    def captures_forget(self) -> None:
        """Pass over what was heard so far."""
        self._captures.forget()

    def fates(self) -> list[tuple[RawDoor | None, bool | None]]:
        """Return of each flow where it came to, and whether its client was answered."""
        return [self._fate(number) for number in range(self.sent)]

    def _fate(self, number: int) -> tuple[RawDoor | None, bool | None]:
        at, port = divmod(number, len(self._flows.ports))
        tag = tag_of(at, self._flows.ports[port])
        return self._landed.get(tag), self._answered.get(tag)

    def unanswered(self, living: set[RawDoor], since: int) -> set[int]:
        """Return the flows from `since` on that came to living endpoints and wait for an answer."""
        return {
            number
            for number in range(since, self.sent)
            for door, answered in [self._fate(number)]
            if door in living and answered is None
        }

    def measured(
        self, span: Span, fates: Sequence[tuple[RawDoor | None, bool | None]], dropped: int
    ) -> Measurement:
        """Return what was counted of some flows."""
        self._predicted = span.expected
        self._kept_back = 0  # they are seen nowhere, as what rules drop is
        self._dead = frozenset(e for e, kind in span.dead.items() if kind.is_dead)
        self._kinds = span.dead
        self._fates = Counter(fates[span.first : span.last])
        waiting = [
            door for door, answer in map(fates.__getitem__, span.in_flight) if answer is None
        ]
        self._in_flight = Counter(door_of(door) for door in waiting if door is not None)
        found = self._measurement(span.last - span.first, None, dropped, span.ends - span.begins)
        self._duplicates = 0  # told once
        return found

    def _death_of(self, endpoint: Endpoint) -> str | None:
        kind = self._kinds.get(endpoint)
        return None if kind is None else str(kind)


@dataclass(frozen=True, slots=True)
class Rulings:
    """A dump that is in force at some time, and what it says of the route."""

    name: str
    ruleset: Rules
    route: Route | None


class Course:
    """One run of a schedule.

    Args:
        rulings: the dump that is loaded, and by their files those that take its place.
        connections: called once the clock runs; gives the connections that are kept.
    """

    def __init__(
        self,
        lab: Lab,
        run: Phased,
        plan: Schedule,
        rulings: dict[str, Rulings],
        connections: Callable[[Callable[[], float]], tuple[Connections, int]],
        rate: float,
    ) -> None:
        self._lab, self._run, self._plan, self._rate = lab, run, plan, rate
        self._rulings = rulings
        self._now = rulings[""]
        self._deaths: list[Death] = list(plan.first)
        self._zero: float | None = None
        self._connect = connections
        #: When flows were sent, and how many had been by then.
        self.marks: list[tuple[float, int]] = []
        self._listings: list[tuple[Rules, Meanwhile]] = []
        self._waiting = list(plan.events)
        self._changing: tuple[Planned, Meanwhile, float] | None = None
        self.spans: list[Span] = []
        self.events: list[Event] = []
        #: When the last flow was sent, in seconds.
        self.ended = 0.0
        #: Whether somebody ended it before its time.
        self.is_interrupted = False

    def clock(self) -> float:
        """Return the seconds since the run began."""
        return 0.0 if self._zero is None else time.monotonic() - self._zero

    def go(self, progress: Progress | None) -> Connections:
        """Let everything happen.

        Raises:
            LabError: something cannot be done, or the kernel holds other rules than it should.
        """
        lab, run = self._lab, self._run
        with lab.muted():
            lab.forget_flows()
            for each in self._deaths:
                lab.dying.kill(each)
            kept, number = self._connect(self.clock)
            try:
                kept.open(number, self._plan.slowest, lab.dying.serve)
                lab.echo(())
                run.captures_forget()
                self._zero = time.monotonic()
                kept.begin()
                self._begin(0.0)
                with interruptible(self._stop):
                    self._traffic(kept, progress)
                self._wait(kept)
            finally:
                kept.close()
                if self._changing is not None:
                    self._changing[1].close()
        if self.is_interrupted:  # what a terminal ends, it ends with all of our programs
            for _, listing in self._listings:
                listing.close()
            return kept
        for ruleset, listing in self._listings:
            while (text := listing.ended()) is None:
                time.sleep(_TICK)
            lab.backend.check(ruleset, text)
        return kept

    @property
    def unchecked(self) -> int:
        """How many changes of rules nobody has checked, since the run was ended before."""
        return len(self._listings) if self.is_interrupted else 0

    def _stop(self) -> None:
        self.is_interrupted = True

    def _traffic(self, kept: Connections, progress: Progress | None) -> None:
        seconds = self._plan.seconds
        while (now := self.clock()) < seconds or self._changing is not None:
            if self.is_interrupted:
                break
            self._happen(now)
            due = int(min(self.clock(), seconds) * self._rate) - self._run.sent
            count = min(_AT_ONCE, due)
            self._run.tick(count)
            if count > 0:
                self.marks.append((self.clock(), self._run.sent))
                if progress is not None:
                    progress(count)
            kept.serve(0 if due > count else _TICK)
        self.ended = self.clock()
        self._end_span(self.ended)

    def _wait(self, kept: Connections) -> None:
        slowest = max((d.kind.milliseconds for d in self._deaths), default=0) / 1000
        deadline = time.monotonic() + _PATIENCE + slowest
        span = self.spans[-1]
        while time.monotonic() < deadline:
            self._run.tick(0)
            if not self._run.unanswered(self._living(span), span.first):
                return
            kept.serve(_TICK)

    # --- what happens --------------------------------------------------------------

    def _happen(self, now: float) -> None:
        if self._changing is not None:
            event, program, begun = self._changing
            if program.ended() is None:
                return
            self._changing = None
            listing = Meanwhile(self._lab.topology.node, self._lab.backend.listing())
            self._listings.append((self._now.ruleset, listing))
            self._over(event, begun)
            now = self.clock()  # what follows begins behind it
            self._begin(now)
        if not self._waiting or self._waiting[0].at > now:
            return
        event = self._waiting.pop(0)
        self._end_span(now)
        old = self.spans[-1]
        old.in_flight = frozenset(self._run.unanswered(self._living(old), old.first))
        if event.death is not None:
            change = self._lab.dying.kill if event.verb == "kill" else self._lab.dying.revive
            change(event.death)
            if event.verb == "kill":
                self._deaths.append(event.death)
            else:
                self._deaths.remove(event.death)
            self._at_event(now, old)
            self._end_span(self.clock())
            self._over(event, now)
            self._begin(self.clock())
            return
        if event.verb == "replace-rules":
            self._now = self._rulings[event.file]
            words, text = self._lab.backend.replacement(self._now.ruleset)
        else:
            words, text = self._lab.backend.sync(self._now.ruleset)
        self._at_event(now, old)
        self._changing = event, Meanwhile(self._lab.topology.node, words, text), now

    def _over(self, event: Planned, begun: float) -> None:
        if not self.spans[-1].ends:
            self._end_span(self.clock())
        self.events.append(Event(at=event.at, begun=begun, ended=self.clock(), says=event.says))

    def _dead(self) -> dict[Endpoint, Kind]:
        return {e: death.kind for death in self._deaths for e in death.endpoints}

    def _living(self, span: Span) -> set[RawDoor]:
        """Return the doors of endpoints that answer, as far as those of the protocol do."""
        if self._run.protocol not in ANSWERED:
            return set()
        return {
            raw_door(each.address.packed, each.port)
            for ruling in self._rulings.values()
            for each in (() if ruling.route is None else (s.endpoint for s in ruling.route.shares))
            if each.port is not None
            and not (span.dead.get(each) is not None and span.dead[each].is_dead)
        }

    def _begin(self, now: float) -> None:
        route = self._now.route
        dead = self._dead()
        expected = _UNKNOWN if route is None else self._run.arriving(route)
        self.spans.append(
            Span(
                begins=now,
                first=self._run.sent,
                dead=dead,
                names=tuple(f"{d.what} ({d.kind})" for d in self._deaths),
                rules=self._now.name,
                route=route,
                expected=expected,
                lost=_lost(expected, dead),
            )
        )

    def _at_event(self, now: float, old: Span) -> None:
        self._begin(now)
        span = self.spans[-1]
        span.at_event = True
        span.expected = either(old.expected, span.expected)
        span.lost = hull(old.lost, span.lost)
        if old.route is None:
            span.route = None
        span.dead = {**old.dead, **span.dead}

    def _end_span(self, now: float) -> None:
        self.spans[-1].ends, self.spans[-1].last = now, self._run.sent

    # --- what came of it -----------------------------------------------------------

    def measurements(self) -> list[tuple[Span, Measurement]]:
        """Return what was counted of each span that has flows; each flow is of one."""
        fates = self._run.fates()
        found = []
        dropped = self._run.dropped()
        for span in self.spans:
            if span.first < span.last:
                found.append((span, self._run.measured(span, fates, dropped)))
                dropped = 0
        assert sum(each.flows for _, each in found) == self._run.sent
        return found


def _lost(expected: Arriving, dead: Mapping[Endpoint, Kind]) -> Bounds:
    """Return the part of flows that no living endpoint gets."""
    gone = {door_of_endpoint(e) for e, kind in dead.items() if kind.is_dead and e.port is not None}
    living = [share for door, share in expected.shares.items() if door not in gone]
    lower, upper = capped_sum(b.lower for b in living), capped_sum(b.upper for b in living)
    return Bounds(~upper, ~lower)
