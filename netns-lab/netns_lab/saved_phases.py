"""Documents of ``lab run --for``, read back and judged again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analyzer.failure.agreement import FALSE_ALARM_RATE, judge, rate_of_each
from analyzer.failure.binomial import interval
from analyzer.model.lab_phases import (
    Arrival,
    Bucket,
    EndpointOutage,
    Hang,
    OpenConnection,
    RunEvent,
)
from analyzer.parsers.measurement import (
    bounds_of,
    count_of,
    flag_of,
    measurement_of,
    seconds_of,
    source_of,
    text_of,
)
from analyzer.reports.lab_phases_answer import FollowedRoute, LabPhasesAnswer, Phase, lost_of
from netns_lab.expecting import judged
from netns_lab.saved_fields import diagnostics_of, left_out_of


def phases_of(document: dict[str, Any]) -> LabPhasesAnswer:
    """Return the answer of a run, judged from what was counted and seen.

    Raises:
        KeyError, TypeError, ValueError: it is not in the form that the lab writes.
    """
    ended = seconds_of(document["ended"])
    interrupted = document["interrupted"]
    rate = rate_of_each(len(document["phases"]))
    answer = LabPhasesAnswer(
        dead=str(document["dead"]),
        seconds=seconds_of(document["seconds"]),
        rate=seconds_of(document["rate"]),
        routes=tuple(_route(each) for each in document["routes"]),
        events=tuple(_event(each) for each in document["events"]),
        phases=tuple(_phase(each, rate) for each in document["phases"]),
        buckets=tuple(_bucket(each) for each in document["buckets"]),
        connections=tuple(judged(_connection(each), ended) for each in document["connections"]),
        false_alarm_rate=FALSE_ALARM_RATE,
        ended=ended,
        interrupted=None if interrupted is None else seconds_of(interrupted),
        left_out=left_out_of(document),
        diagnostics=diagnostics_of(document),
    )
    if not answer.phases:
        raise ValueError("it contains no phase")
    numbers = {each.route for each in answer.phases} | {each.route for each in answer.connections}
    if not numbers <= set(range(len(answer.routes))):
        raise ValueError(f"it has {len(answer.routes)} routes, and counts of others")
    flows = sum(each.verdict.measurement.flows for each in answer.phases)
    if flows != sum(each.flows for each in answer.buckets):
        raise ValueError("the flows of its phases are not those of its buckets")
    return answer


def _route(value: dict[str, Any]) -> FollowedRoute:
    return FollowedRoute(
        service=str(value["service"]),
        protocol=str(value["protocol"]),
        frontend=str(value["frontend"]),
        source=source_of(value["source"]),
        connections=count_of(value["connections"]),
        sender=text_of(value.get("sender")),
    )


def _event(value: dict[str, Any]) -> RunEvent:
    return RunEvent(
        at=seconds_of(value["at"]),
        begun=seconds_of(value["begun"]),
        ended=seconds_of(value["ended"]),
        says=str(value["says"]),
    )


def _phase(value: dict[str, Any], rate: float) -> Phase:
    measured = measurement_of(value["measurement"])
    at_event, lost = flag_of(value["at_event"]), value["lost_predicted"]
    return Phase(
        route=count_of(value["route"]),
        begins=seconds_of(value["begins"]),
        ends=seconds_of(value["ends"]),
        at_event=at_event,
        dead=str(value["dead"]),
        rules=str(value["rules"]),
        verdict=judge(measured, rate, fates=not at_event),
        lost_predicted=None if lost is None else bounds_of(lost),
        interval=interval(lost_of(measured), measured.flows),
    )


def _bucket(value: dict[str, Any]) -> Bucket:
    return Bucket(
        begins=seconds_of(value["begins"]),
        ends=seconds_of(value["ends"]),
        flows=count_of(value["flows"]),
        answered=count_of(value["answered"]),
        endpoints=tuple(
            Arrival(
                name=str(each["name"]),
                landed=count_of(each["landed"]),
                answered=count_of(each["answered"]),
            )
            for each in value["endpoints"]
        ),
    )


def _connection(value: dict[str, Any]) -> OpenConnection:
    ended, outages = value["ended"], value["outages"]
    return OpenConnection(
        number=count_of(value["number"]),
        route=count_of(value["route"]),
        endpoint=text_of(value["endpoint"]),
        answered=count_of(value["answered"]),
        hangs=tuple(Hang(*_times(each["begins"], each["ends"])) for each in value["hangs"]),
        ended=None if ended is None else seconds_of(ended),
        outages=None if outages is None else tuple(_outage(each) for each in outages),
    )


def _times(begins: object, ends: object) -> tuple[float, float | None]:
    return seconds_of(begins), None if ends is None else seconds_of(ends)


def _outage(value: dict[str, Any]) -> EndpointOutage:
    return EndpointOutage(
        begun=seconds_of(value["begun"]),
        by=seconds_of(value["by"]),
        ends=None if value["ends"] is None else _both(value["ends"]),
        is_reset=flag_of(value["reset"]),
    )


def _both(value: Sequence[Any]) -> tuple[float, float]:
    first, last = map(seconds_of, value)
    return first, last
