"""The node where a failure costs most, and the mean over nodes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from analyzer.failure.incidence import ONE, RouteRow, rank
from analyzer.failure.smallest import Survival
from analyzer.failure.vantages import MeanLoss, mean_over_nodes, worst_at
from analyzer.failure.whatif import Failure, FailureKind
from analyzer.model.probability import Bounds, Dyadic
from analyzer.reports.answers import WhatIfAnswer
from analyzer.reports.numbers import bounds_percent
from analyzer.reports.predicted_text import at_nodes


def dead_nodes(answer: WhatIfAnswer, failure: Failure) -> Collection[str]:
    """Return the names of the nodes that fail."""
    if failure.kind is not FailureKind.ZONE:
        return failure.names
    return {n for n in answer.found.vantages if answer.cluster.zone_of(n) in failure.names}


def at_cell(answer: WhatIfAnswer, row: RouteRow | None, dead: Collection[str]) -> str:
    """Return the nodes that a route exists on, for a cell; nothing if all."""
    if row is None or row.at is None:
        return ""
    found = answer.found
    alive = sum(name not in dead for name in found.vantages)
    return at_nodes(worst_at(found, row, dead), alive)


def names_at(answer: WhatIfAnswer, row: RouteRow | None, dead: Collection[str]) -> list[str] | None:
    """Return the nodes by name, for programs; None for every live node."""
    if row is None or row.at is None:
        return None
    return list(worst_at(answer.found, row, dead))


def mean_cell(answer: WhatIfAnswer, at: int, survival: Survival) -> str:
    """Return the mean over nodes of what the worst failure costs a ServicePort."""
    if not answer.found.vantages or survival.worst is None:
        return ""
    mean = mean_over_nodes(answer.found, at, (survival.worst,))
    if not mean.nodes:
        return ""
    return bounds_percent(Bounds(_share(mean.lower), _share(mean.upper)))


def mean_numbers(mean: MeanLoss) -> dict[str, Any] | None:
    """Return a mean for programs, correct to 12 digits; None: it is over no node."""
    if not mean.nodes:
        return None
    ends = (round(min(1.0, rank(n) / rank(ONE)), 12) for n in (mean.lower, mean.upper))
    lower, upper = ends
    return {"lower": lower, "upper": upper, "nodes": mean.nodes}


def _share(number: int) -> Dyadic:
    most = rank(ONE)
    return Dyadic.of(min(rank(number), most), most.bit_length() - 1)
