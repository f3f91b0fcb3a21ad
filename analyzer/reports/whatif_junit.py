"""``whatif`` as JUnit XML, for CI: a test case for each failure and each ServicePort.

A failure fails where it breaks ``--max-loss``, a ServicePort where it breaks ``--min-survives`` or
``--min-survives-zones``; what was not judged fails if any is set, and is skipped otherwise.

Source: https://github.com/testmoapp/junitxml, the subset that CI systems read.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.failure.thresholds import Exceeding, exceeding
from analyzer.failure.whatif import Failure, FailureKind, WhatIf
from analyzer.model.ternary import Ternary
from analyzer.reports.answers import WhatIfAnswer
from analyzer.reports.control_plane_text import made_of, survival
from analyzer.reports.junit import JunitCase, suite
from analyzer.reports.numbers import bounds_percent
from analyzer.reports.phrases import count, named, proto
from analyzer.reports.whatif_breaches import most_lost, some
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
    FailureKind.CONTROL_PLANE: "control plane",
    FailureKind.ZONE: "zones",
    FailureKind.NODE: "nodes",
    FailureKind.SET: "sets of nodes",
}


def render(answer: WhatIfAnswer) -> Iterator[str]:
    """Yield the suites one after the other."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="kubeodds whatif">\n'
    for kind, name in _SUITES.items():
        failures = [each for each in answer.found.failures() if each.kind is kind]
        cases = [_failure(answer, each) for each in failures]
        if kind is FailureKind.SET:
            cases += _other_sets(answer, failures)
        yield from suite(name, cases)
    yield from suite("ServicePorts", [*_services(answer)])
    yield from suite("what the control plane survives", [_control_plane(answer)])
    outcome = "failure" if answer.is_limited else "skipped"
    names = [*answer.not_judged, *(["the rest of the dump"] if answer.view.lacks_some else [])]
    names += ["what was interrupted"] if answer.found.is_interrupted else []
    yield from suite("not judged", [JunitCase(name, outcome, "not judged") for name in names])
    yield "</testsuites>\n"


def _failure(answer: WhatIfAnswer, failure: Failure) -> JunitCase:
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
        return JunitCase(name, "", says)
    return JunitCase(name, "failure", f"{_beyond(answer, found)}; {says}")


def _where(answer: WhatIfAnswer, failure: Failure) -> str:
    """Return at which nodes the worst loss is, where not at every live one."""
    names = names_at(answer, failure.cost.row, dead_nodes(answer, failure))
    return "" if names is None else f", at {some(names)}"


def _left(answer: WhatIfAnswer, failure: Failure) -> str:
    """Return what is left of the control plane."""
    plane = answer.control_plane_after(failure)
    if plane is None:
        return ""
    heals = _HEALS[plane.heals]
    return f"; API {plane.state.value}, {heals}"


def _control_plane(answer: WhatIfAnswer) -> JunitCase:
    found = answer.topology
    if found is None:
        says = "not known, since no node has its role label: --control-plane"
    else:
        says = f"{made_of(found)}; {survival(found)}"
    return JunitCase("control plane", "", says)


def _beyond(answer: WhatIfAnswer, found: Exceeding) -> str:
    none = most_lost(found.row, found.row.reaches_none(found.groups))
    return f"{named(answer.found.service(found.row))} may lose {none}"


def _other_sets(answer: WhatIfAnswer, shown: list[Failure]) -> Iterator[JunitCase]:
    """Yield the set that breaks the threshold, where it is not among those that are listed."""
    listed = {frozenset(each.names) for each in shown}
    for each in answer.breaches:
        if (
            each.kind is FailureKind.SET
            and each.none is not None
            and frozenset(each.names) not in listed
        ):
            says = f"{named(each.service)} may lose {most_lost(each.row, each.none)}"
            yield JunitCase(" + ".join(each.names), "failure", says)


def _services(answer: WhatIfAnswer) -> Iterator[JunitCase]:
    broken = {id(each.service) for each in answer.breaches if each.kind is None}
    if answer.limits_survival:
        broken |= {id(answer.found.services[at]) for at in answer.lost_now}
    for at, service in enumerate(answer.found.services):
        says = [*_survives(answer.found, at)]
        if at in answer.lost_now:
            says.append("all new flows on a route may be lost with nothing dead")
        if says:
            outcome = "failure" if id(service) in broken else ""
            yield JunitCase(
                f"{service.name.text} {proto(service.protocol, service.version)}",
                outcome,
                "; ".join(says),
            )


def _survives(found: WhatIf, at: int) -> Iterator[str]:
    """Yield how many nodes a ServicePort survives, and zones; nothing without endpoints."""
    survives = found.survives(at)
    if survives is not None:
        yield _any(survives, "node")
    zones = found.survival_of_zones(at)
    if zones is not None:
        yield _any(zones.survives, "zone")


def _any(number: int, unit: str) -> str:
    if not number:
        return f"does not survive the loss of some single {unit}"
    return f"survives the loss of any {count(number, unit)}"
