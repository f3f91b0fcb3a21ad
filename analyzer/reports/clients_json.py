"""``kubeodds/clients/1``."""

from __future__ import annotations

from analyzer.failure.agreement import client_agrees
from analyzer.reports import json_values as values
from analyzer.reports.answers import ClientsAnswer


def render(answer: ClientsAnswer) -> str:
    """Return what each client met."""
    fields = {
        "node": answer.node,
        "dead": answer.dead,
        "trials": [
            {
                "command": trial.command,
                "target": trial.target,
                "runs": trial.runs,
                "succeeded": trial.succeeded,
                "succeeds": values.bounds(trial.succeeds),
                "failure_seconds": [round(s, 3) for s in trial.failure_seconds],
                "agrees": client_agrees(trial),
            }
            for trial in answer.trials
        ],
        "diagnostics": values.diagnostics(answer.diagnostics),
    }
    return values.document("clients", 1, fields)
