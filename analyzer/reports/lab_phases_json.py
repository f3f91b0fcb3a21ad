"""``kubeodds/lab-phases/1``: new flows and open connections during a timed run of events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.model.lab_phases import Bucket, OpenConnection
from analyzer.reports import json_values as values
from analyzer.reports.lab_json import left_out, measurement
from analyzer.reports.lab_phases_answer import FollowedRoute, LabPhasesAnswer, Phase, lost_of

_VERSION = 1


def render(answer: LabPhasesAnswer) -> Iterator[str]:
    """Yield the document."""
    return values.document(
        "lab-phases",
        {
            "dead": values.encode(answer.dead),
            "agrees": values.encode(answer.agrees),
            "seconds": values.encode(answer.seconds),
            "rate": values.encode(answer.rate),
            "false_alarm_rate": values.encode(answer.false_alarm_rate),
            "ended": values.encode(round(answer.ended, 4)),
            "interrupted": values.encode(
                None if answer.interrupted is None else round(answer.interrupted, 4)
            ),
            "unaccounted": values.encode(answer.unaccounted),
            "routes": [values.encode(_route(*each, answer)) for each in enumerate(answer.routes)],
            "events": (
                values.encode(
                    {
                        "at": each.at,
                        "begun": round(each.begun, 4),
                        "ended": round(each.ended, 4),
                        "says": each.says,
                    }
                )
                for each in answer.events
            ),
            "phases": (values.encode(_phase(each)) for each in answer.phases),
            "buckets": (values.encode(_bucket(each)) for each in answer.buckets),
            "connections": (values.encode(_connection(each)) for each in answer.connections),
            "left_out": values.encode([left_out(each) for each in answer.left_out]),
            "diagnostics": values.diagnostics(answer.diagnostics),
        },
        _VERSION,
    )


def _route(at: int, each: FollowedRoute, answer: LabPhasesAnswer) -> dict[str, Any]:
    phases = answer.phases_of(at)
    return {
        "service": each.service,
        "protocol": each.protocol,
        "frontend": each.frontend,
        "source": each.source,
        "sender": each.sender,
        "flows": sum(phase.verdict.measurement.flows for phase in phases),
        "connections": each.connections,
        "agrees": answer.agrees_at(at),
    }


def _phase(each: Phase) -> dict[str, Any]:
    measured = each.verdict.measurement
    return {
        "route": each.route,
        "begins": round(each.begins, 4),
        "ends": round(each.ends, 4),
        "at_event": each.at_event,
        "dead": each.dead,
        "rules": each.rules,
        "predicted": each.predicted,
        "lost": lost_of(measured),
        "lost_predicted": None
        if each.lost_predicted is None
        else values.bounds(each.lost_predicted),
        "interval": None if each.interval is None else list(each.interval),
        "measurement": measurement(each.verdict),
    }


def _bucket(each: Bucket) -> dict[str, Any]:
    return {
        "begins": round(each.begins, 4),
        "ends": round(each.ends, 4),
        "flows": each.flows,
        "answered": each.answered,
        "endpoints": [
            {"name": to.name, "landed": to.landed, "answered": to.answered} for to in each.endpoints
        ],
    }


def _connection(each: OpenConnection) -> dict[str, Any]:
    return {
        "number": each.number,
        "route": each.route,
        "endpoint": each.endpoint,
        "fate": each.fate,
        "answered": each.answered,
        "hangs": [
            {
                "begins": round(hang.begins, 3),
                "ends": None if hang.ends is None else round(hang.ends, 3),
            }
            for hang in each.hangs
        ],
        "ended": None if each.ended is None else round(each.ended, 3),
        "outages": None
        if each.outages is None
        else [
            {
                "begun": outage.begun,
                "by": outage.by,
                "ends": None if outage.ends is None else list(outage.ends),
                "reset": outage.is_reset,
            }
            for outage in each.outages
        ],
        "expected": each.expected,
        "agrees": each.agrees,
    }
