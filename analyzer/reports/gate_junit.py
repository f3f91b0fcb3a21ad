"""``gate`` as JUnit XML, for CI: a test case for each Service, threshold and kind of failure."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.gate.evaluation import EvaluatedService, WorstCase
from analyzer.reports.gate_answer import (
    GateAnswer,
    allowed_words,
    failing_names,
    fix_words,
    loss_words,
    pending_words,
    placed_words,
    unknown_words,
    violation_words,
)
from analyzer.reports.junit import JunitCase, suite
from analyzer.reports.phrases import count


def render(answer: GateAnswer) -> Iterator[str]:
    """Yield the suites one after the other."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="kubeodds gate">\n'
    for kind in answer.failing.kinds:
        cases = [
            _case(answer, number, evaluated, found)
            for number, evaluated in enumerate(answer.evaluated)
            for found in evaluated.worst
            if found.kind is kind
        ]
        yield from suite(f"loss with a failure of {kind.value}", cases)
    yield from suite(
        "nodes survived",
        [_case(answer, number, each, each.fewest) for number, each in enumerate(answer.evaluated)],
    )
    yield from suite(
        "pods placed",
        [
            JunitCase(p.group.name, "failure" if p.least else "skipped", pending_words(p))
            for p in answer.pending
        ],
    )
    outcome = "failure" if answer.thresholds.are_any else "skipped"
    yield from suite(
        "not judged",
        [
            *[
                JunitCase("/".join(each.manifest.key), outcome, each.why)
                for each in answer.not_judged
            ],
            *[
                JunitCase(f"{each.manifest.title} {each.path}", outcome, unknown_words(each))
                for each in answer.unknown
            ],
        ],
    )
    yield "</testsuites>\n"


def _case(
    answer: GateAnswer, number: int, evaluated: EvaluatedService, found: WorstCase
) -> JunitCase:
    name = evaluated.service.name
    broken = next((each for each in evaluated.violations if each.found is found), None)
    where = placed_words(answer, found.case)
    if broken is None:
        return JunitCase(name, "", f"{_losses(found)}; pods on {where or 'no node'}")
    says = f"{violation_words(answer, evaluated, broken)}; pods on {where}"
    says += f"; {'; '.join(allowed_words(answer, evaluated))}"
    if number in answer.fixes:
        says += f"; fix: {fix_words(answer.fixes[number])}"
    return JunitCase(name, "failure", says)


def _losses(found: WorstCase) -> str:
    if found.kind is None:
        return f"survives {count(max(0, found.case.survives), 'node')}"
    failing = failing_names(found.case, found.kind)
    return f"loses {loss_words(found)}" + (f" if {failing}" if failing else "")
