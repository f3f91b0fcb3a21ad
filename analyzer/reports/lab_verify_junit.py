"""``lab verify`` as JUnit XML: a test case for each measurement and each route left out.

Source: https://github.com/testmoapp/junitxml, what CI systems read of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from analyzer.failure.agreement import JudgedMeasurement
from analyzer.model.value import replace
from analyzer.reports.junit import JunitCase, suite
from analyzer.reports.lab_answers import LabAnswer


def render(answer: LabAnswer) -> Iterator[str]:
    """Yield a suite for each ServicePort, and one for what was not measured."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="kubeodds lab verify">\n'
    by_service: dict[str, list[JunitCase]] = {}
    for verdict in answer.verdicts:
        measured = verdict.measurement
        name = f"{measured.service}/{measured.protocol}"
        by_service.setdefault(name, []).append(_case(verdict))
    for name, cases in by_service.items():
        yield from suite(name, _numbered(cases))
    yield from suite(
        "not measured",
        [
            JunitCase(f"{e.service}/{e.protocol} {e.frontend} from {e.source}", "skipped", e.reason)
            for e in answer.left_out
        ],
    )
    yield "</testsuites>\n"


def _numbered(cases: list[JunitCase]) -> list[JunitCase]:
    """Number cases of one name, of several senders or networks: CI systems take them for one."""
    total, so_far = Counter(each.name for each in cases), Counter[str]()
    found = []
    for each in cases:
        so_far[each.name] += 1
        number = f" ({so_far[each.name]} of {total[each.name]})"
        found.append(replace(each, name=each.name + number) if total[each.name] > 1 else each)
    return found


def _case(verdict: JudgedMeasurement) -> JunitCase:
    measured = verdict.measurement
    name = f"{measured.frontend} from {measured.source}"
    if verdict.agrees:
        return JunitCase(name, "", f"{measured.flows} flows, {measured.seconds:.3f} s")
    return JunitCase(name, "failure", "; ".join(verdict.faults))
