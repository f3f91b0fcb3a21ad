"""``kubeodds/lab/1``: what was counted, whole, so that `lab verify` can judge it again."""

from __future__ import annotations

from typing import Any

from analyzer.failure.agreement import Verdict
from analyzer.reports import json_values as values
from analyzer.reports.answers import LabAnswer


def render(answer: LabAnswer) -> str:
    """Return each measurement with its verdict."""
    fields = {
        "dead": answer.dead,
        "agrees": answer.agrees,
        "measurements": [_measurement(verdict) for verdict in answer.verdicts],
        "diagnostics": values.diagnostics(answer.diagnostics),
    }
    return values.document("lab", 1, fields)


def _measurement(verdict: Verdict) -> dict[str, Any]:
    measured = verdict.measurement
    return {
        "service": measured.service,
        "protocol": measured.protocol,
        "frontend": measured.frontend,
        "source": measured.source,
        "node": measured.node,
        "kernel": measured.kernel,
        "backend": measured.backend,
        "flows": measured.flows,
        "seconds": round(measured.seconds, 3),
        "passed": measured.passed,
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
                "p_value": v.p_value,
                "agrees": v.agrees,
            }
            for v in verdict.endpoints
        ],
        "false_alarm_rate": verdict.false_alarm_rate,
        "agrees": verdict.agrees,
        "faults": list(verdict.faults),
    }
