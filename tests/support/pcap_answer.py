"""What a replay of a capture found: all fields of it."""

from __future__ import annotations

from typing import Final

from analyzer.failure.agreement import judge
from analyzer.model.lab_pcap import PassedOver, ReplayedFlow, StandIn
from analyzer.model.probability import ALWAYS, NEVER, Bounds
from analyzer.model.value import replace
from analyzer.reports.lab_pcap_answer import LabPcapAnswer
from tests.support.phases_answer import HALF, PHASES

_WHOLE: Final = PHASES.phases[0].verdict.measurement
_MEASURED: Final = replace(
    _WHOLE,
    flows=_WHOLE.flows + 1,
    rejected=1,
    ended=Bounds(NEVER, ALWAYS),
    ended_by=((1, "-A KUBE-SERVICES -j REJECT"),),
)


def _flow(packet: int, outcome: str, endpoint: str | None, answered: bool | None) -> ReplayedFlow:
    return ReplayedFlow(
        packet=packet,
        at=packet / 8,
        client="10.244.1.7",
        client_port=40_000 + packet,
        stands_as="10.244.1.254",
        to="10.96.0.1:80",
        protocol="tcp",
        service="ns/a:http",
        frontend="ClusterIP 10.96.0.1:80",
        source="pod",
        outcome=outcome,
        endpoint=endpoint,
        answered=answered,
        predicted=HALF,
    )


PCAP: Final = LabPcapAnswer(
    file="flows.pcap",
    packets=20,
    cut="it ends in the middle of packet 21",
    dead="node master",
    timing="kept",
    node="worker1",
    verdicts=(judge(_MEASURED),),
    flows=(
        _flow(1, "endpoint", "10.0.0.1:80", True),
        _flow(2, "dead-endpoint", "10.0.0.2:80", None),
        _flow(3, "rejected", None, False),
        _flow(4, "dropped", None, None),
        _flow(5, "unchanged", None, None),
    ),
    stand_ins=(StandIn(client="10.244.1.7", source="pod", stands_as="10.244.1.254", flows=5),),
    passed_over=(
        PassedOver(reason="replies of Services", packets=12),
        PassedOver(
            reason="for which the dump has no route from there",
            packets=3,
            judged=False,
            examples=("10.96.0.9:53 (udp)",),
        ),
    ),
    counters=0,
    conntrack=None,
    false_alarm_rate=1e-6,
)
