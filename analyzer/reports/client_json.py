"""``kubeodds/client/1``: the outcome of client operations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from analyzer.clients.operations import Connection, Journey, LookUp, PredictedOperation
from analyzer.clients.outcome import QUANTILES
from analyzer.clients.plan import Time
from analyzer.clients.walk import FractionRange
from analyzer.reports import json_values as values
from analyzer.reports.client_answer import ClientAnswer
from analyzer.reports.client_text import known_from
from analyzer.reports.client_words import why
from analyzer.reports.timeline_json import number

_VERSION: Final = 1


def render(answer: ClientAnswer) -> Iterator[str]:
    """Yield the operations one by one."""
    dead = answer.dead
    return values.document(
        "client",
        {
            "node": values.encode(answer.view.node),
            "dead": values.encode(
                {
                    "nodes": list(dead.nodes),
                    "zones": list(dead.zones),
                    "endpoints": sorted(str(each) for each in dead.endpoints),
                }
            ),
            "fates": (values.encode({"name": n, "fate": f}) for n, f in answer.fates),
            "source": values.encode(answer.source.value),
            "client": values.encode(None if answer.client is None else str(answer.client)),
            "singled_out": (
                values.encode({"name": name, "networks": [*map(str, networks)]})
                for name, networks in answer.singled_out
            ),
            "balancer": (
                values.encode({"node": name, "chance": number(chance)})
                for name, chance in answer.balanced
            ),
            "operations": (values.encode(_operation(answer, each)) for each in answer.found),
            "callers": values.encode(_callers(answer)),
            "max_failure": values.encode(
                None if answer.max_failure is None else number(answer.max_failure)
            ),
            "assumed": map(values.encode, answer.assumed),
            "not_judged": map(values.encode, answer.not_judged),
            "diagnostics": values.diagnostics(answer.diagnostics),
        },
        _VERSION,
    )


def _operation(answer: ClientAnswer, predicted: PredictedOperation) -> dict[str, Any]:
    operation, outcome = predicted.operation, predicted.outcome
    callers = answer.callers
    return {
        "client": operation.client,
        **_what(predicted),
        "measured": known_from(predicted) == "measured",
        "fails": _range(outcome.fails),
        "flow_fails": None if predicted.flow is None else _range(predicted.flow),
        "delay": _range(outcome.delay),
        "quantiles": [
            {"share": number(share), "within": _range(within)}
            for share, within in zip(QUANTILES, outcome.quantiles, strict=True)
        ],
        "endings": [
            {
                "result": each.result.value,
                "after": _time(each.time),
                "chance": _range(each.chance),
            }
            for each in outcome.endings
        ],
        "alternatives": [
            {"what": what, "fails": _range(fails)} for what, fails in predicted.alternatives.items()
        ],
        "callers_without_answer": None
        if callers is None
        else _range(callers.without_answer(outcome.fails)),
        "why": list(why(predicted)),
    }


def _what(predicted: PredictedOperation) -> dict[str, Any]:
    match predicted.operation:
        case LookUp() as operation:
            return {
                "kind": "look-up",
                "target": operation.name,
                "service": None,
                "frontend": None,
                "names": [{"name": each.name, "exists": each.exists} for each in operation.asked],
                "source": operation.resolver.source,
            }
        case Connection() as operation:
            return {
                "kind": "connection",
                "target": operation.service.name.text,
                "service": values.name(operation.service),
                "frontend": None
                if operation.frontend is None
                else values.frontend(operation.frontend),
                "names": [],
                "source": operation.connector.source,
            }
        case Journey() as operation:
            return {
                "kind": "journey",
                "target": operation.says,
                "service": None,
                "frontend": None,
                "names": [],
                "source": None,
            }


def _range(value: FractionRange) -> dict[str, Any]:
    return {"lower": number(value[0]), "upper": number(value[1], up=True)}


def _time(time: Time) -> dict[str, Any]:
    return {"earliest": number(time.least), "latest": number(time.most, up=True)}


def _callers(answer: ClientAnswer) -> dict[str, Any] | None:
    found = answer.callers
    if found is None:
        return None
    return {
        "living": sorted(found.living),
        "dead": sorted(found.dead),
        "unplaced": sorted(found.unplaced),
    }
