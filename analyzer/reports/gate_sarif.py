"""``gate`` as SARIF, for code review: each failure, at the manifest that causes it.

Source: OASIS, Static Analysis Results Interchange Format 2.1.0; what GitHub's code scanning reads
of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from analyzer import __version__
from analyzer.model.text import printable
from analyzer.parsers.manifests import Manifest
from analyzer.reports.gate_answer import (
    GateAnswer,
    allowed_words,
    fix_words,
    pending_words,
    placed_words,
    unknown_words,
    violation_words,
    workloads_of,
)

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_RULES: Final = {
    "max-loss": "A failure costs a Service more new flows than is allowed",
    "min-survives": "A Service does not survive the loss of enough nodes",
    "pending": "Pods have no node",
    "not-judged": "A Service was not judged",
    "unknown-field": "A field of a manifest is unknown",
}


def render(answer: GateAnswer) -> str:
    """Return one run with its results."""
    results = [*_violations(answer), *_pending(answer), *_not_judged(answer)]
    run = {
        "tool": {
            "driver": {
                "name": "kubeodds gate",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [
                    {
                        "id": name,
                        "name": "".join(word.capitalize() for word in name.split("-")),
                        "shortDescription": {"text": says},
                        "defaultConfiguration": {"level": "error"},
                    }
                    for name, says in _RULES.items()
                ],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _violations(answer: GateAnswer) -> Iterator[dict[str, Any]]:
    for number, evaluated in enumerate(answer.evaluated):
        allowed = "; ".join(allowed_words(answer, evaluated))
        for each in evaluated.violations:
            rule = "min-survives" if each.found.kind is None else "max-loss"
            says = f"{violation_words(answer, evaluated, each)}."
            where = placed_words(answer, each.found.case)
            says += f" With its pods on {where}." if where else ""
            says += f" {allowed}."
            if number in answer.fixes:
                says += f" Fix: {fix_words(answer.fixes[number])}."
            behind = next((w.manifest for w in workloads_of(answer, evaluated.service)), None)
            kind = "survives" if each.found.kind is None else each.found.kind.value
            found = evaluated.service.manifest
            yield _result(rule, says, behind or found, found, f"{evaluated.service.name} {kind}")


def _pending(answer: GateAnswer) -> Iterator[dict[str, Any]]:
    for each in answer.pending:
        made = _result(
            "pending", f"{pending_words(each)}.", each.manifest, each.manifest, each.group.name
        )
        yield made if each.least else {**made, "level": "warning"}


def _not_judged(answer: GateAnswer) -> Iterator[dict[str, Any]]:
    level = "error" if answer.thresholds.are_any else "warning"
    for each in answer.not_judged:
        name = "/".join(each.manifest.key)
        says = f"{name} was not judged: {each.why}."
        made = _result("not-judged", says, each.manifest, each.manifest, name)
        yield {**made, "level": level}
    for field in answer.unknown:
        place = f"{field.manifest.title} {field.path}"
        made = _result("unknown-field", unknown_words(field), field.manifest, field.manifest, place)
        yield {**made, "level": level}


def _result(
    rule: str, says: str, place: Manifest, other: Manifest, fingerprint: str
) -> dict[str, Any]:
    """Return a result at a manifest; a second one is listed as related."""
    made: dict[str, Any] = {
        "ruleId": rule,
        "ruleIndex": [*_RULES].index(rule),
        "level": "error",
        "message": {"text": printable(says)},
        "locations": [_location(place)],
        "partialFingerprints": {"kubeodds/v1": printable(f"{rule} {fingerprint}")},
    }
    if other is not place:
        related = {**_location(other), "id": 1}
        related["message"] = {"text": printable(f"{other.kind} {'/'.join(other.key)}")}
        made["relatedLocations"] = [related]
    return made


def _location(given: Manifest) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(given.place.file)},
            "region": {"startLine": max(1, given.place.line)},
        }
    }


def _uri(file: str) -> str:
    """Return the name of a file as a URI, relative as it was given."""
    from urllib.parse import quote

    name = "stdin" if file == "<stdin>" else file.removeprefix("./")
    return quote(name, safe="/")
