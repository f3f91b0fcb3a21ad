"""``kubeodds/gate/1``: what the worst placements of manifests lose, and thresholds exceeded.

Losses are exact, except for rounding as in ``whatif``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.gate.cases import Case
from analyzer.gate.evaluation import EvaluatedService, WorstCase
from analyzer.gate.fixes import Fix
from analyzer.model.probability import ALWAYS
from analyzer.parsers.manifests import Manifest
from analyzer.reports import json_values as values
from analyzer.reports.gate_answer import (
    GateAnswer,
    Pending,
    allowed_words,
    replicas_of,
    violation_words,
    workloads_of,
)
from analyzer.reports.predicted_json import prediction
from analyzer.reports.whatif_json import rounded

_VERSION = 1


def render(answer: GateAnswer) -> Iterator[str]:
    """Yield the Services one by one."""
    limits = answer.thresholds
    return values.document(
        "gate",
        {
            "passes": values.encode(not answer.is_broken),
            "asked": values.encode(
                {
                    "max_loss": None if limits.max_loss is None else float(limits.max_loss),
                    "min_survives": limits.min_survives,
                    "failures": [each.value for each in answer.failing.kinds],
                    "depth": answer.failing.depth,
                }
            ),
            "nodes": map(values.encode, (node.name for node in answer.problem.nodes)),
            "services": (
                values.encode(_service(answer, number, each))
                for number, each in enumerate(answer.evaluated)
            ),
            "pending": (values.encode(_pending(each)) for each in answer.pending),
            "not_judged": (
                values.encode(
                    {
                        "service": "/".join(each.manifest.key),
                        "why": each.why,
                        "has_rules": each.matters,
                        **_place(each.manifest),
                    }
                )
                for each in answer.unjudged
            ),
            "unknown_fields": (
                values.encode(
                    {
                        "kind": each.manifest.kind,
                        "namespace": each.manifest.namespace,
                        "name": each.manifest.name,
                        "path": each.path,
                        **_place(each.manifest),
                    }
                )
                for each in answer.unknown
            ),
            "ignored": (
                values.encode({"kind": kind, "number": number})
                for kind, number in sorted(answer.ignored.items())
            ),
            "assumed": map(values.encode, answer.assumed),
            "checked": values.encode(answer.checked),
            "prediction": values.encode(prediction(answer.prediction)),
            "diagnostics": values.diagnostics(answer.diagnostics),
        },
        _VERSION,
    )


def _place(given: Manifest) -> dict[str, Any]:
    return {"file": given.place.file, "line": given.place.line}


def _service(answer: GateAnswer, number: int, evaluated: EvaluatedService) -> dict[str, Any]:
    namespace, name = evaluated.service.key
    fix = answer.fixes.get(number)
    return {
        "namespace": namespace,
        "service": name,
        "ports": list(evaluated.service.ports),
        **_place(evaluated.service.manifest),
        "workloads": [
            {
                "name": each.name,
                "replicas": each.replicas,
                "most_replicas": None if each.replicas is None else each.most,
                **_place(each.manifest),
            }
            for each in workloads_of(answer, evaluated.service)
        ],
        "worst": [_worst(answer, each) for each in evaluated.worst],
        "survives": _survives(answer, evaluated.fewest),
        "expected": {
            "losses": [
                {"failure": kind.value, "loss": _loss(evaluated.expected, kind)}
                for kind in answer.failing.kinds
            ],
            "survives": evaluated.expected.survives,
            "pods": _pods(answer, evaluated.expected),
        },
        "pending": {
            "at_least": evaluated.placements.pending[0],
            "at_most": evaluated.placements.pending[1],
        },
        "dropping_nodes": evaluated.dropping,
        "allowed": list(allowed_words(answer, evaluated)),
        "violations": [
            {
                "threshold": "min-survives" if v.found.kind is None else "max-loss",
                "failure": None if v.found.kind is None else v.found.kind.value,
                "proven": v.breach is not None,
                "says": violation_words(answer, evaluated, v),
            }
            for v in evaluated.violations
        ],
        "fix": None if fix is None else _fix(answer, fix),
    }


def _loss(case: Case, kind: Any) -> dict[str, Any]:
    loss = case.loss(kind)
    if case.found is None:
        return values.bounds(type(loss)(ALWAYS, ALWAYS))
    return {
        "lower": values.probability(rounded(loss.lower)),
        "upper": values.probability(rounded(loss.upper, up=True)),
    }


def _worst(answer: GateAnswer, found: WorstCase) -> dict[str, Any]:
    assert found.kind is not None  # of a failure
    failure = found.case.failure(found.kind)
    return {
        "failure": found.kind.value,
        "names": [] if failure is None else list(failure.names),
        "loss": _loss(found.case, found.kind),
        "proven": found.is_proven,
        "at_most": None if found.most is None else float(found.most),
        "replicas": _replicas(answer, found.case),
        "pods": _pods(answer, found.case),
    }


def _survives(answer: GateAnswer, found: WorstCase) -> dict[str, Any]:
    surely = found.case.survives if found.is_proven else found.surely
    return {
        "nodes": found.case.survives,
        "proven": found.is_proven,
        "at_least": max(0, surely),
        "replicas": _replicas(answer, found.case),
        "pods": _pods(answer, found.case),
    }


def _replicas(answer: GateAnswer, case: Case) -> list[dict[str, Any]]:
    """Return the numbers at which that is so, of workloads that are scaled."""
    return [{"workload": w.name, "number": number} for w, number in replicas_of(answer, case)]


def _pods(answer: GateAnswer, case: Case) -> list[dict[str, Any]]:
    return [{"node": name, "number": number} for name, number in case.places(answer.problem)]


def _fix(answer: GateAnswer, fix: Fix) -> dict[str, Any]:
    then = fix.then
    return {
        "says": fix.says,
        "enough": fix.is_enough,
        "patches": [
            {
                "kind": each.manifest.kind,
                "namespace": each.manifest.namespace,
                "name": each.manifest.name,
                "merge": each.merge,
            }
            for each in fix.patches
        ],
        "worst": [
            {
                "failure": each.kind.value,
                "loss": _loss(each.case, each.kind),
                "proven": each.is_proven,
            }
            for each in then.worst
            if each.kind is not None
        ],
        "survives": then.fewest.case.survives,
        "pods": _pods(answer, then.fewest.case),
    }


def _pending(each: Pending) -> dict[str, Any]:
    return {
        "workload": each.group.name,
        "replicas": each.group.number,
        "at_least": each.least,
        "expected": each.expected,
        "why": each.why,
        **_place(each.manifest),
    }
