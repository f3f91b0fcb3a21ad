"""``kubeodds/lab-repair/1``: the measured effect of a repair on the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.failure.agreement import JudgedMeasurement
from analyzer.reports import json_values as values
from analyzer.reports.lab_answers import LabRepairAnswer, RepairedRoute
from analyzer.reports.lab_json import left_out, measurement
from analyzer.reports.lab_repair_text import lost

_VERSION = 1


def render(answer: LabRepairAnswer) -> Iterator[str]:
    """Yield the document."""
    return values.document(
        "lab-repair",
        {
            "agrees": values.encode(answer.agrees),
            "rate": values.encode(answer.rate),
            "dead": values.encode(answer.dead),
            "node": values.encode(answer.node),
            "routes": map(_route, answer.routes),
            "checks": (
                values.encode({"says": each.says, "holds": each.holds}) for each in answer.checks
            ),
            "left_out": values.encode([left_out(each) for each in answer.left_out]),
            "diagnostics": values.diagnostics(answer.diagnostics),
        },
        _VERSION,
    )


def _route(each: RepairedRoute) -> str:
    measured = each.before.measurement
    return values.encode(
        {
            "service": measured.service,
            "protocol": measured.protocol,
            "frontend": measured.frontend,
            "source": measured.source,
            "backend": measured.backend,
            "kernel": measured.kernel,
            "before": _run(each.before),
            "after": _run(each.after),
            "synced": _run(each.synced),
        }
    )


def _run(verdict: JudgedMeasurement) -> dict[str, Any]:
    measured = verdict.measurement
    return {
        "flows": measured.flows,
        "on_dead": lost(verdict),
        "rejected": measured.rejected,
        "unaccounted": measured.unaccounted,
        "endpoints": [
            {
                "address": each.endpoint.address,
                "port": each.endpoint.port,
                "dead": each.endpoint.dead,
                "predicted": {
                    "lower": values.probability(each.endpoint.predicted.lower),
                    "upper": values.probability(each.endpoint.predicted.upper),
                },
                "landed": each.endpoint.landed,
                "p_value": each.p_value,
            }
            for each in verdict.endpoints
        ],
        "faults": list(verdict.faults),
        "false_alarm_rate": verdict.false_alarm_rate,
        "agrees": verdict.agrees,
        "measurement": measurement(verdict),
    }
