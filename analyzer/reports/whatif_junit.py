"""``whatif`` as JUnit's XML, for CI: a test case a failure, and one a ServicePort.

A failure fails where it breaks ``--max-loss``, a ServicePort where it breaks ``--min-survives``;
what was not judged fails where either was asked for, and is skipped else.

Source: https://github.com/testmoapp/junitxml, what CI systems read of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.failure.thresholds import Exceeding, exceeding
from analyzer.failure.whatif import Failure, Kind
from analyzer.model.ternary import Ternary
from analyzer.model.text import printable
from analyzer.model.value import value
from analyzer.reports.answers import WhatIfAnswer
from analyzer.reports.control_plane_text import made_of, survival
from analyzer.reports.numbers import bounds_percent, percent
from analyzer.reports.phrases import count
from analyzer.reports.whatif_breaches import some
from analyzer.reports.whatif_vantages import dead_nodes, names_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_HEALS: Final = {
    Ternary.TRUE: "dead endpoints leave the rules in time",
    Ternary.FALSE: "nothing heals",
    Ternary.UNKNOWN: "not known whether anything heals",
}
_SUITES: Final = {
    Kind.CONTROL_PLANE: "control plane",
    Kind.ZONE: "zones",
    Kind.NODE: "nodes",
    Kind.SET: "sets of nodes",
}


@value
class _Case:
    """A test case; its outcome is failure, skipped, or nothing where it passes."""

    name: str
    outcome: str
    says: str


def render(answer: WhatIfAnswer) -> Iterator[str]:
    """Give one suite after the other."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="kubeodds whatif">\n'
    for kind, name in _SUITES.items():
        failures = [each for each in answer.found.failures() if each.kind is kind]
        cases = [_failure(answer, each) for each in failures]
        if kind is Kind.SET:
            cases += _other_sets(answer, failures)
        yield from _suite(name, cases)
    yield from _suite("ServicePorts", [*_services(answer)])
    yield from _suite("what the control plane survives", [_control_plane(answer)])
    asked = answer.max_loss is not None or answer.min_survives is not None
    outcome = "failure" if asked else "skipped"
    names = [*answer.not_judged, *(["the rest of the dump"] if answer.view.cut else [])]
    names += ["what was interrupted"] if answer.found.is_interrupted else []
    yield from _suite("not judged", [_Case(name, outcome, "not judged") for name in names])
    yield "</testsuites>\n"


def _failure(answer: WhatIfAnswer, failure: Failure) -> _Case:
    worst, cost = failure.worst, failure.cost
    says = f"worst loss {'0.0%' if worst is None else bounds_percent(worst)}"
    says += f", {count(len(cost.silenced), 'ServicePort')} in total loss"
    says += _where(answer, failure) + _left(answer, failure)
    name = " + ".join(failure.names)
    found = None
    if answer.max_loss is not None:
        where = answer.found.incidence_of(failure)
        found = exceeding(where, failure.groups, answer.max_loss)
    if found is None:
        return _Case(name, "", says)
    return _Case(name, "failure", f"{_beyond(answer, found)}; {says}")


def _where(answer: WhatIfAnswer, failure: Failure) -> str:
    """Return at which nodes the worst loss is, where not at every one that lives."""
    names = names_at(answer, failure.cost.row, dead_nodes(answer, failure))
    return "" if names is None else f", at {some(names)}"


def _left(answer: WhatIfAnswer, failure: Failure) -> str:
    """Return what is left of the control plane."""
    judgement = answer.judged(failure)
    if judgement is None:
        return ""
    heals = _HEALS[judgement.heals]
    return f"; API {judgement.state.value}, {heals}"


def _control_plane(answer: WhatIfAnswer) -> _Case:
    found = answer.topology
    if found is None:
        says = "not known, since no node has its role label: --control-plane"
    else:
        says = f"{made_of(found)}; {survival(found)}"
    return _Case("control plane", "", says)


def _beyond(answer: WhatIfAnswer, found: Exceeding) -> str:
    none = percent(found.row.reaches_none(found.groups))
    return f"{answer.found.service(found.row).name.text} may lose {none}"


def _other_sets(answer: WhatIfAnswer, shown: list[Failure]) -> Iterator[_Case]:
    """Give the set that breaks the threshold, where it is not among those that are listed."""
    listed = {frozenset(each.names) for each in shown}
    for each in answer.breaches:
        if each.kind is Kind.SET and each.none is not None and frozenset(each.names) not in listed:
            says = f"{each.service.name.text} may lose {percent(each.none)}"
            yield _Case(" + ".join(each.names), "failure", says)


def _services(answer: WhatIfAnswer) -> Iterator[_Case]:
    least = answer.min_survives
    for at, service in enumerate(answer.found.services):
        survives = answer.found.survives(at)
        if survives is not None:
            broken = least is not None and survives < least
            says = (
                f"survives {'any ' + count(survives, 'node') if survives else 'no loss of a node'}"
            )
            name = f"{service.name.text} {service.protocol}"
            yield _Case(name, "failure" if broken else "", says)


def _suite(name: str, cases: list[_Case]) -> Iterator[str]:
    if not cases:
        return
    outcomes = [each.outcome for each in cases]
    failed, skipped = outcomes.count("failure"), outcomes.count("skipped")
    yield (
        f'<testsuite name="{name}" tests="{len(cases)}" failures="{failed}" skipped="{skipped}">\n'
    )
    for each in cases:
        head = f'<testcase classname="kubeodds.{name}" name="{_escaped(each.name)}"'
        says = _escaped(each.says)
        if each.outcome:
            yield f'{head}><{each.outcome} message="{says}"/></testcase>\n'
        else:
            yield f"{head}><system-out>{says}</system-out></testcase>\n"
    yield "</testsuite>\n"


def _escaped(text: str) -> str:
    """Return text for XML, which has no way to write control characters."""
    shown = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return shown.replace('"', "&quot;")
