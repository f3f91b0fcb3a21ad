"""``kubeodds/clients/2``: predicted and measured outcomes of real clients in the lab."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.failure.agreement import client_agrees, clients_agree, rate_of_trials
from analyzer.model.measurement import ClientTrial
from analyzer.reports import json_values as values
from analyzer.reports.lab_answers import ClientsAnswer
from analyzer.reports.lab_json import left_out


def render(answer: ClientsAnswer) -> Iterator[str]:
    """Yield the results of each client."""
    rate = rate_of_trials(answer.trials)
    return values.document(
        "clients",
        {
            "agrees": values.encode(clients_agree(answer.trials)),
            "rate": values.encode(answer.rate),
            "node": values.encode(answer.node),
            "dead": values.encode(answer.dead),
            "trials": (values.encode(_trial(trial, rate)) for trial in answer.trials),
            "left_out": values.encode([left_out(each) for each in answer.left_out]),
            "diagnostics": values.diagnostics(answer.diagnostics),
        },
    )


def _trial(trial: ClientTrial, rate: float) -> dict[str, Any]:
    return {
        "command": trial.command,
        "target": trial.target,
        "family": trial.family,
        "runs": trial.runs,
        "succeeded": trial.succeeded,
        "succeeds": None if trial.succeeds is None else values.bounds(trial.succeeds),
        "failure_seconds": [round(s, 3) for s in trial.failure_seconds],
        "failure_takes": None
        if trial.failure_takes is None
        else dict(zip(("least", "most"), trial.failure_takes, strict=True)),
        "exits": [
            {
                "status": each.status,
                "runs": each.runs,
                "says": each.says,
                "seconds": {
                    name: round(seconds, 3)
                    for name, seconds in zip(("least", "median", "most"), each.seconds, strict=True)
                },
            }
            for each in trial.exits
        ],
        "false_alarm_rate": None if trial.succeeds is None else rate,
        "agrees": client_agrees(trial, rate),
    }
