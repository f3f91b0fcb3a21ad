"""The answer of ``lab run --for``."""

from __future__ import annotations

from analyzer.failure.agreement import JudgedMeasurement
from analyzer.model.diagnostics import Diagnostic
from analyzer.model.lab_phases import Bucket, OpenConnection, RunEvent
from analyzer.model.measurement import Measurement
from analyzer.model.probability import Bounds
from analyzer.model.value import value
from analyzer.reports.lab_answers import LeftOut


@value(kw_only=True)
class FollowedRoute:
    """A route whose flows left in turn with those of others.

    Attributes:
        connections: how many stayed open on it.
        sender: of a hairpin route, the endpoint that sent the flows.
    """

    service: str
    protocol: str
    frontend: str
    source: str
    connections: int
    sender: str | None = None


@value(kw_only=True)
class Phase:
    """The new flows of one route between two events, or at one.

    Attributes:
        route: its number.
        at_event: they were in flight when it happened, so each may have ended as before or as after
            it.
        dead: the dead endpoints.
        rules: the dump in force.
        lost_predicted: the predicted share of flows without an answer; None: the dump in force does
            not have the route, and nothing is judged.
        interval: the exact 99 % interval of the share of flows without an answer; None: of none.
    """

    begins: float
    ends: float
    at_event: bool
    dead: str
    rules: str
    verdict: JudgedMeasurement
    lost_predicted: Bounds | None
    interval: tuple[float, float] | None
    route: int = 0

    @property
    def predicted(self) -> bool:
        """Whether there is a prediction."""
        return self.lost_predicted is not None


@value(kw_only=True)
class LabPhasesAnswer:
    """The answer of ``lab run --for``: phases, each tested, and connections.

    Attributes:
        rate: new flows a second, of all routes together.
        false_alarm_rate: the greatest chance that a correct prediction is called wrong as a whole.
        ended: the second in which the last flow or connection was looked at.
        interrupted: the second in which the run was interrupted; None if it ran to its end.
    """

    dead: str
    seconds: float
    rate: float
    routes: tuple[FollowedRoute, ...]
    events: tuple[RunEvent, ...]
    phases: tuple[Phase, ...]
    buckets: tuple[Bucket, ...]
    connections: tuple[OpenConnection, ...]
    false_alarm_rate: float
    ended: float
    interrupted: float | None = None
    left_out: tuple[LeftOut, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether the kernel did what was predicted, on each route, in each phase.

        And to each connection. Where nothing was predicted it agrees with nothing.
        """
        found = [self.agrees_at(at) for at in range(len(self.routes))]
        return False not in found and True in found

    def agrees_at(self, route: int) -> bool | None:
        """Return whether all that was predicted of one route came true; None if nothing was."""
        told = [each.verdict.agrees for each in self.phases_of(route) if each.predicted]
        told += [
            each.agrees
            for each in self.connections
            if each.route == route and each.agrees is not None
        ]
        return all(told) if told else None

    def phases_of(self, route: int) -> list[Phase]:
        """Return the phases of one route, in order."""
        return [each for each in self.phases if each.route == route]

    @property
    def unaccounted(self) -> int:
        """Flows that were sent and seen nowhere, where it is known that no rule ends any."""
        measured = [each.verdict.measurement for each in self.phases if each.predicted]
        return sum(each.unaccounted for each in measured if not each.ended.upper)


def lost_of(measurement: Measurement) -> int:
    """Return how many flows got no answer."""
    return measurement.flows - sum(each.answered for each in measurement.endpoints)
