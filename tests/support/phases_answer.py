"""What a run found in which an endpoint died, and whose rules were replaced: all fields of it."""

from __future__ import annotations

from typing import Final

from analyzer.failure.agreement import judge
from analyzer.model.lab_phases import (
    Arrival,
    Bucket,
    EndpointOutage,
    Hang,
    OpenConnection,
    RunEvent,
)
from analyzer.model.measurement import EndpointCount, Measurement
from analyzer.model.probability import NEVER, Bounds, Dyadic
from analyzer.model.value import replace
from analyzer.reports.lab_answers import LeftOut
from analyzer.reports.lab_phases_answer import FollowedRoute, LabPhasesAnswer, Phase

HALF: Final = Bounds(Dyadic.of(1, 1), Dyadic.of(1, 1))


def _endpoint(address: str, *, dead: bool, landed: int = 500) -> EndpointCount:
    return EndpointCount(
        address=address,
        port=80,
        node="worker1",
        dead=dead,
        predicted=HALF,
        landed=landed,
        counted=None,
        answered=0 if dead else landed,
        refused=0,
        death="silent" if dead else None,
    )


def _measured(*endpoints: EndpointCount) -> Measurement:
    return Measurement(
        service="ns/a:http",
        protocol="tcp",
        frontend="ClusterIP 10.96.0.1:80",
        source="pod",
        node="worker1",
        flows=sum(each.landed for each in endpoints),
        endpoints=endpoints,
        passed=0,
        duplicates=0,
        dropped_by_capture=0,
        seconds=5.0,
        kernel="6.18",
        backend="legacy",
    )


_FIRST, _OTHER = "10.0.0.1", "10.0.0.2"
ALIVE = _measured(_endpoint(_FIRST, dead=False), _endpoint(_OTHER, dead=False))
DEAD = _measured(_endpoint(_FIRST, dead=True), _endpoint(_OTHER, dead=False))
BETWEEN = _measured(_endpoint(_FIRST, dead=True, landed=3), _endpoint(_OTHER, dead=False, landed=2))
WRONG = replace(
    DEAD,
    endpoints=(replace(DEAD.endpoints[0], answered=7), DEAD.endpoints[1]),
    ended_by=((2, "-A KUBE-FIREWALL -j DROP"),),
    ended_at="filter: -A KUBE-FIREWALL -j DROP",
)

_PHASE: Final = Phase(
    begins=0.0,
    ends=5.0,
    at_event=False,
    dead="nothing",
    rules="dump.txt",
    verdict=judge(ALIVE),
    lost_predicted=Bounds(NEVER, NEVER),
    interval=(0.0, 0.005),
)

PHASES: Final = LabPhasesAnswer(
    dead="nothing",
    seconds=20.0,
    rate=200.0,
    routes=(
        FollowedRoute(
            service="ns/a:http", protocol="tcp", frontend="ClusterIP 10.96.0.1:80", source="pod",
            connections=4,
        ),
    ),
    events=(
        RunEvent(at=5.0, begun=5.01, ended=5.04, says="kill 10.0.0.1 (silent)"),
        RunEvent(at=10.0, begun=10.0, ended=10.1, says="replace-rules later.txt"),
    ),
    phases=(
        _PHASE,
        replace(
            _PHASE, begins=5.04, ends=10.0, dead="10.0.0.1 (silent)", verdict=judge(DEAD),
            lost_predicted=HALF, interval=(0.45, 0.55),
        ),
        replace(
            _PHASE, begins=10.0, ends=10.1, at_event=True, dead="10.0.0.1 (silent)",
            verdict=judge(BETWEEN, fates=False), lost_predicted=HALF, interval=(0.1, 0.9),
        ),
        replace(
            _PHASE, begins=10.1, ends=15.0, rules="later.txt", dead="10.0.0.1 (silent)",
            verdict=judge(DEAD), lost_predicted=None,
        ),
        replace(_PHASE, begins=15.0, ends=20.0, verdict=judge(WRONG), lost_predicted=HALF),
    ),
    buckets=(
        Bucket(
            begins=0.0, ends=10.0, flows=2000, answered=1500,
            endpoints=(Arrival(name="10.0.0.1:80", landed=1000, answered=500),),
        ),
    ),
    connections=(
        OpenConnection(
            number=0, endpoint="10.0.0.2:80", answered=400, outages=(), expected="survives",
            agrees=True,
        ),
        OpenConnection(
            number=1, endpoint="10.0.0.1:80", answered=100,
            hangs=(Hang(5.0, 6.0), Hang(7.0, None)), expected="hangs from 5.0s", agrees=False,
            outages=(EndpointOutage(begun=5.01, by=5.04, ends=None),),
        ),
        OpenConnection(
            number=2, endpoint="10.0.0.1:80", answered=100, ended=5.1,
            expected="reset at 5.0s", agrees=True,
            outages=(EndpointOutage(begun=5.01, by=5.04, ends=(9.0, 9.1), is_reset=True),),
        ),
        OpenConnection(number=3, endpoint=None, answered=0),
    ),
    false_alarm_rate=1e-6,
    ended=20.0123,
    left_out=(
        LeftOut(
            service="ns/a:http", protocol="tcp", frontend="NodePort *:30080", source="pod",
            reason="dead endpoints send no flows",
        ),
    ),
)  # fmt: skip
