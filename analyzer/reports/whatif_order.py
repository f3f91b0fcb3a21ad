"""Which failures and ServicePorts a report lists, and in which order."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.failure.costs import Cost
from analyzer.failure.incidence import ONE, rank
from analyzer.failure.smallest import Survival
from analyzer.failure.whatif import Failure
from analyzer.model.probability import Bounds, Dyadic
from analyzer.reports.answers import WhatIfAnswer
from analyzer.reports.numbers import bounds_percent, percent


def shown_failures(answer: WhatIfAnswer) -> list[Failure]:
    """Return the failures to show: the control plane, then the worst of each kind."""
    found, top = answer.found, answer.top
    kinds: list[Sequence[Failure]] = [found.of_zones, found.of_nodes]
    first = [] if found.control_plane is None else [found.control_plane]
    for each in kinds:
        shown = [*each] if answer.every else [*each[:top]]
        if answer.by_name:
            shown.sort(key=lambda failure: failure.names)
        first += shown
    for sets in found.sets:
        first += sets.worst[:top]
    return first


def services_in_order(answer: WhatIfAnswer) -> list[tuple[int, Survival]]:
    """Return the indices of ServicePorts with endpoints, most fragile first."""
    found = answer.found
    survivals = [
        (at, survival)
        for at in range(len(found.services))
        if (survival := found.survival(at)) is not None
    ]
    if answer.by_name:
        survivals.sort(key=lambda each: _name(answer, each[0]))
    else:
        survivals.sort(key=lambda each: (each[1].survives, -_most(each[1]), _name(answer, each[0])))
    return survivals


def _name(answer: WhatIfAnswer, at: int) -> tuple[str, str]:
    service = answer.found.services[at]
    return service.name.text, service.protocol


def _most(survival: Survival) -> int:
    if survival.worst is None or survival.worst_row is None:
        return 0
    return rank(survival.worst_row.most((survival.worst,)))


def mean_loss(answer: WhatIfAnswer, cost: Cost) -> tuple[float, float]:
    """Return bounds on the mean over all ServicePorts with endpoints, to 12 digits."""
    counted = answer.found.nodes.counted
    if not counted:
        return 0.0, 0.0
    ends = (min(1.0, rank(number) / (counted * rank(ONE))) for number in (cost.lower, cost.upper))
    lower, upper = (round(each, 12) for each in ends)
    return lower, upper


def mean(answer: WhatIfAnswer, cost: Cost) -> str:
    """Return the mean for people."""
    counted = max(1, answer.found.nodes.counted)
    most = rank(ONE)
    lower, upper = (
        Dyadic.of(min(rank(each) // counted, most), most.bit_length() - 1)
        for each in (cost.lower, cost.upper)
    )
    return percent(lower) if lower == upper else bounds_percent(Bounds(lower, upper))
