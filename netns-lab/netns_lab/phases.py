"""New flows at a steady rate while things die and revive, and rules are replaced.

Theory of operation
===================

Flows are sent some milliseconds apart, in turn on each route. Each has arrived when the call that
sends it returns, so its outcome depends only on what is dead and which rules are loaded at that
moment; only answers of slow endpoints come later. No flow is sent while a death is brought about.
Rules are replaced by a program that runs in parallel: flows sent from its start to its end may see
the old rules or the new ones. They are counted as a phase of their own, in which each endpoint may
have any share between its old and its new one. A flow that was sent, but not yet answered when
something died, needs no answer; it belongs to the phase in which it was sent, and is counted apart.

If the rules of both IP versions are separate dumps, there is a lab for each, and everything happens
in both at the same time.

The loaded rules are read after each change by a parallel program too, and compared at the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

from analyzer.model.lab_phases import RunEvent
from analyzer.semantics.base_chains import Rules
from netns_lab.command import Meanwhile
from netns_lab.connections import Connections
from netns_lab.deaths import Death
from netns_lab.experiment import Lab
from netns_lab.followed import Followed, Recorder
from netns_lab.interrupting import interruptible
from netns_lab.layout import PacketLayout
from netns_lab.measure import Progress
from netns_lab.schedule import Planned, Schedule

#: Flows per call, and the seconds between calls.
_AT_ONCE: Final = 64
_TICK: Final = 0.01
#: Seconds to wait for answers at the end.
_PATIENCE: Final = 2.0


@dataclass(slots=True)
class RunningLab:
    """One lab of a run, with its routes.

    Attributes:
        rulesets: the dump loaded first, under None, and those that replace it here, by file.
        recorders: captures of its flows.
        now: the file whose rules are loaded; None for the first dump.
    """

    lab: Lab
    runs: tuple[Followed, ...]
    rulesets: Mapping[str | None, Rules]
    recorders: Mapping[PacketLayout, Recorder]
    now: str | None = None
    listings: list[tuple[Rules, Meanwhile]] = field(default_factory=list)

    def begin(self, now: float, deaths: Sequence[Death]) -> None:
        """Begin a phase of each route."""
        rules = str(self.rulesets[None].file) if self.now is None else self.now
        for each in self.runs:
            each.begin(now, self.now, rules, deaths)

    def change(self, event: Planned) -> Meanwhile | None:
        """Start to write other rules, or the same again; None if they are not for this lab."""
        backend = self.lab.backend
        if event.verb == "resync":
            words, text = backend.sync(self.rulesets[self.now])
        elif event.file not in self.rulesets:
            return None
        else:
            self.now = event.file
            words, text = backend.replacement(self.rulesets[self.now])
        return Meanwhile(self.lab.topology.node, words, text)

    def read_back(self) -> None:
        """Start to read the loaded rules, which have just changed."""
        self.lab.backend.changed()
        listing = Meanwhile(self.lab.topology.node, self.lab.backend.listing())
        self.listings.append((self.rulesets[self.now], listing))

    def check(self) -> None:
        """Raise a LabError if any loaded rules differed from what they should have been."""
        for ruleset, listing in self.listings:
            while (text := listing.ended()) is None:
                time.sleep(_TICK)
            self.lab.backend.check(ruleset, text)


class Course:
    """One run of a schedule.

    Args:
        connections: called once with the clock; returns the connections that stay open.
        rate: new flows per second, on all routes together.
    """

    def __init__(
        self,
        sides: Sequence[RunningLab],
        plan: Schedule,
        connections: Callable[[Callable[[], float]], Connections],
        rate: float,
    ) -> None:
        self.sides, self._plan, self._rate = tuple(sides), plan, rate
        self.runs = tuple(run for side in sides for run in side.runs)
        self._deaths: list[Death] = list(plan.first)
        self._zero: float | None = None
        self._connect = connections
        self._waiting = list(plan.events)
        self._changing: tuple[Planned, list[tuple[RunningLab, Meanwhile]], float] | None = None
        self.events: list[RunEvent] = []
        #: When the last flow was sent, seconds from the start.
        self.ended = 0.0
        #: Whether Ctrl-C ended it early.
        self.is_interrupted = False

    def clock(self) -> float:
        """Return the seconds since the run began."""
        return 0.0 if self._zero is None else time.monotonic() - self._zero

    @property
    def sent(self) -> int:
        """Flows sent on all routes."""
        return sum(each.sent for each in self.runs)

    def go(self, progress: Progress | None) -> Connections:
        """Run the schedule.

        Raises:
            LabError: something cannot be done, or the kernel holds other rules than it should.
        """
        with ExitStack() as muted:
            for side in self.sides:
                muted.enter_context(side.lab.muted())
                side.lab.forget_flows()
                deaf = {each.deafness: each for each in side.runs if each.deafness is not None}
                for run in deaf.values():
                    muted.enter_context(run.deaf())
                for each in self._deaths:
                    side.lab.dying.kill(each)
            kept = self._connect(self.clock)
            try:
                kept.open(self._plan.slowest, self._serve)
                for side in self.sides:
                    side.lab.echo(())
                    for recorder in side.recorders.values():
                        recorder.forget()
                self._zero = time.monotonic()
                kept.begin()
                self._begin(0.0)
                with interruptible(self._stop):
                    self._traffic(kept, progress)
                self._wait(kept)
            finally:
                kept.close()
                if self._changing is not None:
                    for _, program in self._changing[1]:
                        program.close()
        if self.is_interrupted:  # what a terminal ends, it ends with all of our programs
            for _, listing in (each for side in self.sides for each in side.listings):
                listing.close()
            return kept
        for side in self.sides:
            side.check()
        return kept

    @property
    def unchecked(self) -> int:
        """How many changes of rules were not checked, because the run was interrupted."""
        return sum(len(side.listings) for side in self.sides) if self.is_interrupted else 0

    def _serve(self) -> None:
        for side in self.sides:
            side.lab.dying.serve()

    def _stop(self) -> None:
        self.is_interrupted = True

    def _traffic(self, kept: Connections, progress: Progress | None) -> None:
        seconds = self._plan.seconds
        while (now := self.clock()) < seconds or self._changing is not None:
            if self.is_interrupted:
                break
            self._happen(now)
            is_late = False
            for each, due in self._due(int(min(self.clock(), seconds) * self._rate)):
                count = min(_AT_ONCE, due)
                each.tick(count, self.clock())
                is_late |= due > count
                if count and progress is not None:
                    progress(count)
            kept.serve(0 if is_late else _TICK)
        self.ended = self.clock()
        self._end(self.ended)

    def _due(self, flows: int) -> Iterator[tuple[Followed, int]]:
        """Yield how many flows each route has to send, if `flows` should have been sent in all."""
        each_has, more = divmod(flows, len(self.runs))
        for at, each in enumerate(self.runs):
            # While lists of clients come and go, none can be made to forget.
            waits = each.has_affinity and self._changing is not None
            due = max(0, each_has + (at < more) - each.sent - each.skipped)
            if each.is_mute:
                each.skipped += due
                due = 0
            yield each, 0 if waits else due

    def _wait(self, kept: Connections) -> None:
        slowest = max((d.kind.milliseconds for d in self._deaths), default=0) / 1000
        deadline = time.monotonic() + _PATIENCE + slowest
        while time.monotonic() < deadline:
            for each in self.runs:
                each.tick(0, self.clock())
            if not any(each.unanswered() for each in self.runs):
                return
            kept.serve(_TICK)

    # --- what happens --------------------------------------------------------------

    def _happen(self, now: float) -> None:
        if self._changing is not None:
            event, programs, begun = self._changing
            programs[:] = [each for each in programs if not self._is_over(*each)]
            if programs:
                return
            self._changing = None
            self._over(event, begun)
            now = self.clock()  # what follows begins behind it
            self._begin(now)
        if not self._waiting or self._waiting[0].at > now:
            return
        event = self._waiting.pop(0)
        self._end(now)
        old = [each.spans[-1] for each in self.runs]
        for each, span in zip(self.runs, old, strict=True):
            span.in_flight = each.unanswered()
        if event.death is not None:
            self._die(event, event.death)
        else:
            found = [(side, side.change(event)) for side in self.sides]
            started = [(side, program) for side, program in found if program is not None]
            self._changing = event, started, now
        self._begin(now)
        for each, span in zip(self.runs, old, strict=True):
            each.change(span)
        if event.death is not None:
            self._over(event, now)
            self._begin(self.clock())

    def _is_over(self, side: RunningLab, program: Meanwhile) -> bool:
        if program.ended() is None:
            return False
        side.read_back()
        return True

    def _die(self, event: Planned, death: Death) -> None:
        for side in self.sides:
            dying = side.lab.dying
            (dying.kill if event.verb == "kill" else dying.revive)(death)
        if event.verb == "kill":
            self._deaths.append(death)
        else:
            self._deaths.remove(death)

    def _over(self, event: Planned, begun: float) -> None:
        now = self.clock()
        self._end(now)
        self.events.append(RunEvent(at=event.at, begun=begun, ended=now, says=event.says))

    def _begin(self, now: float) -> None:
        for side in self.sides:
            side.begin(now, self._deaths)

    def _end(self, now: float) -> None:
        for each in self.runs:
            if not each.spans[-1].ends:
                each.end(now)
