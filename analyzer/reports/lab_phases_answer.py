"""The answer of ``lab run --for``."""

from __future__ import annotations

from analyzer.failure.agreement import Verdict
from analyzer.model.diagnostics import Diagnostic
from analyzer.model.lab_phases import Bucket, Connection, Event
from analyzer.model.measurement import Measurement
from analyzer.model.probability import Bounds
from analyzer.model.value import value
from analyzer.reports.answers import LeftOut


@value(kw_only=True)
class Phase:
    """The new flows between two events, or at one.

    Attributes:
        at_event: they were on their way when it happened: each may have fared as before or after.
        dead: who was dead.
        rules: the dump in force.
        lost_predicted: the share of flows that is to be without an answer; None: the dump in force
            does not tell of the route, and nothing is judged.
        interval: the exact 99 % interval of the share of flows without an answer; None: of none.
    """

    begins: float
    ends: float
    at_event: bool
    dead: str
    rules: str
    verdict: Verdict
    lost_predicted: Bounds | None
    interval: tuple[float, float] | None

    @property
    def predicted(self) -> bool:
        """Whether there is a prediction."""
        return self.lost_predicted is not None


@value(kw_only=True)
class LabPhasesAnswer:
    """The answer of ``lab run --for``: phases, each tested, and connections.

    Attributes:
        rate: new flows a second.
        false_alarm_rate: how often, at most, the whole is called wrong when it is right.
        interrupted: the second in which somebody ended the run; None: it took its time.
    """

    dead: str
    seconds: float
    rate: float
    events: tuple[Event, ...]
    phases: tuple[Phase, ...]
    buckets: tuple[Bucket, ...]
    connections: tuple[Connection, ...]
    false_alarm_rate: float
    interrupted: float | None = None
    left_out: tuple[LeftOut, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether each phase and each connection agrees with the prediction.

        Where nothing was predicted it agrees with nothing.
        """
        wrong = any(each.agrees is False for each in self.connections)
        told = [each.verdict.agrees for each in self.phases if each.predicted]
        return not wrong and bool(told) and all(told)

    @property
    def is_whole(self) -> bool:
        """Whether each phase is tested."""
        return all(each.predicted for each in self.phases)

    @property
    def unaccounted(self) -> int:
        """Flows that were sent and never seen again, if no rule may drop any."""
        measured = [each.verdict.measurement for each in self.phases]
        return sum(each.unaccounted for each in measured if not each.ended.upper)


def lost_of(measurement: Measurement) -> int:
    """Return how many flows got no answer."""
    return measurement.flows - sum(each.answered for each in measurement.endpoints)
