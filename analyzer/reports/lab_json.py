"""``kubeodds/lab/2``: complete counts, so that `lab judge` can test them again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.failure.agreement import JudgedMeasurement
from analyzer.model.flow_trace import FlowTrace
from analyzer.model.measurement import Measurement
from analyzer.reports import json_values as values
from analyzer.reports.lab_answers import LabAnswer, LeftOut


def render(answer: LabAnswer) -> Iterator[str]:
    """Yield each measurement with its verdict."""
    return values.document(
        "lab",
        {
            "dead": values.encode(answer.dead),
            "agrees": values.encode(answer.agrees),
            "routes": values.encode(answer.routes),
            "resolution": values.encode(answer.resolution),
            "rate": values.encode(answer.rate),
            "left_out": values.encode([left_out(each) for each in answer.left_out]),
            "traces": values.encode([_trace(each) for each in answer.traces]),
            "measurements": (values.encode(measurement(verdict)) for verdict in answer.verdicts),
            "diagnostics": values.diagnostics(answer.diagnostics),
        },
    )


def _trace(each: FlowTrace) -> dict[str, Any]:
    return {
        "service": each.service,
        "source": each.source,
        "flow": each.flow,
        "matched": list(each.matched),
        "differs": each.differs,
    }


def left_out(each: LeftOut) -> dict[str, str]:
    """Return a route that was not measured, with the reason."""
    return {
        "service": each.service,
        "protocol": each.protocol,
        "frontend": each.frontend,
        "source": each.source,
        "reason": each.reason,
    }


def measurement(verdict: JudgedMeasurement) -> dict[str, Any]:
    """Return a complete measurement, with its verdict."""
    measured = verdict.measurement
    return {
        "service": measured.service,
        "protocol": measured.protocol,
        "family": _family(measured),
        "frontend": measured.frontend,
        "source": measured.source,
        "node": measured.node,
        "kernel": measured.kernel,
        "backend": measured.backend,
        "flows": measured.flows,
        "seconds": round(measured.seconds, 3),
        "passed": measured.passed,
        "ended": values.bounds(measured.ended),
        "rejected": measured.rejected,
        "ended_by": None
        if measured.ended_by is None
        else [{"packets": packets, "rule": rule} for packets, rule in measured.ended_by],
        "ended_at": measured.ended_at,
        "repeated": measured.repeated,
        "repeated_ended": measured.repeated_ended,
        "strayed": measured.strayed,
        "unaccounted": measured.unaccounted,
        "duplicates": measured.duplicates,
        "dropped_by_capture": measured.dropped_by_capture,
        "counter_difference": measured.counter_difference,
        "endpoints": [
            {
                "address": v.endpoint.address,
                "port": v.endpoint.port,
                "node": v.endpoint.node,
                "dead": v.endpoint.dead,
                "predicted": values.bounds(v.endpoint.predicted),
                "landed": v.endpoint.landed,
                "counted": v.endpoint.counted,
                "answered": v.endpoint.answered,
                "refused": v.endpoint.refused,
                "in_flight": v.endpoint.in_flight,
                "death": v.endpoint.death,
                "lost": values.bounds(v.endpoint.lost),
                "unanswered": values.bounds(v.endpoint.unanswered),
                "p_value": v.p_value,
                "agrees": v.agrees,
            }
            for v in verdict.endpoints
        ],
        "false_alarm_rate": verdict.false_alarm_rate,
        "agrees": verdict.agrees,
        "faults": list(verdict.faults),
    }


def _family(measured: Measurement) -> str:
    """Return the family of the frontend; a NodePort of any address has that of its endpoints."""
    addresses = [measured.frontend, *(each.address for each in measured.endpoints)]
    return "ip6" if any(text.count(":") > 1 for text in addresses) else "ip"
