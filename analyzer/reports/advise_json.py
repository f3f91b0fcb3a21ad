"""``kubeodds/advise/1``: what measures gain Services, before and after.

Worst losses are exact, except for rounding as in ``whatif``; means are floats, right to 12 digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.advice.advise import Advice, EvaluatedMeasure, ServiceCosts
from analyzer.advice.measure import Refused
from analyzer.failure.incidence import ONE, rank
from analyzer.reports import json_values as values
from analyzer.reports.advise_answer import AdviseAnswer
from analyzer.reports.advise_text import assumed_of
from analyzer.reports.predicted_json import prediction
from analyzer.reports.whatif_json import rounded

_VERSION = 1


def render(answer: AdviseAnswer) -> Iterator[str]:
    """Yield the Services one by one."""
    failures = answer.failures
    return values.document(
        "advise",
        {
            "vantage": values.encode(list(answer.prediction.nodes)),
            "failures": values.encode(
                {"nodes": list(failures.dead), "depth": 1 if failures.dead else failures.depth}
            ),
            "services": map(_service, answer.advice),
            "more_services": values.encode(answer.more),
            "assumed": map(values.encode, assumed_of(answer)),
            "checked": values.encode(answer.checked),
            "not_judged": map(values.encode, answer.not_judged),
            "no_endpoints": map(values.encode, answer.without),
            "prediction": values.encode(prediction(answer.prediction)),
            "diagnostics": values.diagnostics(answer.diagnostics),
        },
        _VERSION,
    )


def _service(each: Advice) -> str:
    namespace, name = each.key
    return values.encode(
        {
            "namespace": namespace,
            "service": name,
            "ports": list(each.ports),
            "now": _outcome(each.now),
            "now_predicted": None if each.predicted is None else _outcome(each.predicted),
            "pods": {
                "endpoints": each.behind.endpoints,
                "listed": each.behind.listed,
                "owners": list(each.behind.owners),
                "held": each.behind.held,
            },
            "measures": [_measure(evaluated, each.now) for evaluated in each.measures],
        }
    )


def _measure(evaluated: EvaluatedMeasure, now: ServiceCosts) -> dict[str, Any]:
    measure, outcome = evaluated.measure, evaluated.outcome
    found: dict[str, Any] = {"measure": measure.name, "says": measure.says}
    if isinstance(outcome, Refused):
        return {**found, "then": None, "refused": outcome.why, "is": None, "unsaid": []}
    is_ = "better" if outcome.key() < now.key() else "same"
    is_ = "worse" if outcome.key() > now.key() else is_
    unsaid = list(measure.unsaid)
    return {**found, "then": _outcome(outcome), "refused": None, "is": is_, "unsaid": unsaid}


def _outcome(outcome: ServiceCosts) -> dict[str, Any]:
    found = outcome.score
    lower, upper = rounded(found.worst.loss.lower), rounded(found.worst.loss.upper, up=True)
    return {
        "survives": found.survives,
        "survives_at_most": found.at_most,
        "worst_loss": {
            "lower": values.probability(lower),
            "upper": values.probability(upper),
            "nodes": list(found.worst.nodes),
            "at": list(found.worst.at) or None,
        },
        "mean_loss": {"lower": _mean(found.mean[0]), "upper": _mean(found.mean[1])},
        "dropping_nodes": found.dropped,
        "nodes": found.nodes,
        "endpoints": list(outcome.places),
        "api_survives": outcome.api,
    }


def _mean(number: int) -> float:
    return round(min(1.0, rank(number) / rank(ONE)), 12)
