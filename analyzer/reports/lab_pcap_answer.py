"""The answer of ``lab run --pcap``."""

from __future__ import annotations

from analyzer.failure.agreement import JudgedMeasurement
from analyzer.model.diagnostics import Diagnostic
from analyzer.model.lab_pcap import PassedOver, ReplayedFlow, StandIn
from analyzer.model.value import value


@value(kw_only=True)
class LabPcapAnswer:
    """The answer of ``lab run --pcap``: each flow, and each route tested.

    Attributes:
        packets: of the capture: flows that were replayed and packets passed over sum to them.
        cut: why the capture has no more; None where it ends with a whole packet.
        timing: ``kept`` or ``flat``.
        counters, conntrack: packets, or flows, by which other ways of counting differ from what
            was seen; None if they were not read.
        false_alarm_rate: the greatest chance that a correct prediction is called wrong as a whole.
    """

    file: str
    packets: int
    cut: str | None
    dead: str
    timing: str
    node: str | None
    verdicts: tuple[JudgedMeasurement, ...]
    flows: tuple[ReplayedFlow, ...]
    stand_ins: tuple[StandIn, ...]
    passed_over: tuple[PassedOver, ...]
    counters: int | None
    conntrack: int | None
    false_alarm_rate: float
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether all counts of every route agree with the prediction."""
        same = not self.counters and not self.conntrack
        return same and bool(self.verdicts) and all(each.agrees for each in self.verdicts)

    @property
    def not_judged(self) -> int:
        """Packets that begin flows to Services of the dump, or may, and are not tested."""
        return sum(each.packets for each in self.passed_over if not each.judged)
