"""The answers of the lab, except for those of ``lab run --for`` and ``lab pcap``."""

from __future__ import annotations

from analyzer.failure.agreement import JudgedMeasurement
from analyzer.model.diagnostics import Diagnostic
from analyzer.model.flow_trace import FlowTrace
from analyzer.model.measurement import ClientTrial
from analyzer.model.value import value


@value(kw_only=True)
class LeftOut:
    """A route that the lab does not measure, with the reason."""

    service: str
    protocol: str
    frontend: str
    source: str
    reason: str


@value(kw_only=True)
class LabAnswer:
    """The answer of ``lab run``, ``lab verify`` and ``lab judge``: each measurement, tested.

    Attributes:
        routes: how many were measured; each endpoint of a hairpin route is a measurement.
        left_out: those that were predicted but not measured.
        resolution: by how much a share must be wrong to be detected, if that was requested.
        rate: the greatest chance that a correct prediction is called wrong as a whole; each verdict
            has the rate of its own measurement.
        traces: of flows that the kernel traced.
    """

    dead: str
    verdicts: tuple[JudgedMeasurement, ...]
    traces: tuple[FlowTrace, ...] = ()
    routes: int | None = None
    left_out: tuple[LeftOut, ...] = ()
    resolution: float | None = None
    rate: float
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether the kernel did what was predicted, everywhere."""
        differ = any(each.differs is not None for each in self.traces)
        all_agree = bool(self.verdicts) and all(verdict.agrees for verdict in self.verdicts)
        return not differ and all_agree


@value(kw_only=True)
class RepairedRoute:
    """A route to dead endpoints, measured: before a repair, with it, and after a sync on top."""

    before: JudgedMeasurement
    after: JudgedMeasurement
    synced: JudgedMeasurement


@value
class RepairCheck:
    """Another property that a repair must have, and whether it had it."""

    says: str
    holds: bool


@value(kw_only=True)
class LabRepairAnswer:
    """The answer of ``lab repair``: the effect of a repair on the kernel.

    Attributes:
        rate: as in `LabAnswer`.
    """

    dead: str
    node: str | None
    routes: tuple[RepairedRoute, ...]
    checks: tuple[RepairCheck, ...]
    left_out: tuple[LeftOut, ...] = ()
    rate: float
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether the kernel did what was predicted, and all that has to hold did."""
        verdicts = [v for r in self.routes for v in (r.before, r.after, r.synced)]
        return all(v.agrees for v in verdicts) and all(c.holds for c in self.checks)


@value(kw_only=True)
class ClientsAnswer:
    """The answer of ``lab clients``: the outcomes of real programs.

    Attributes:
        left_out: routes that no client was run for.
        rate: as in `LabAnswer`.
    """

    dead: str
    node: str | None
    trials: tuple[ClientTrial, ...]
    left_out: tuple[LeftOut, ...] = ()
    rate: float
    diagnostics: tuple[Diagnostic, ...] = ()
