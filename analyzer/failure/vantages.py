"""What a failure costs a ServicePort at every node: the mean, and where it costs most."""

from __future__ import annotations

from collections.abc import Collection

from analyzer.failure.incidence import RouteRow
from analyzer.failure.whatif import WhatIf
from analyzer.model.value import value


@value
class MeanLoss:
    """The mean over the living nodes of what a ServicePort loses there on its worst route.

    In the unit of the incidence, at least and at most; `nodes` is the number of living nodes whose
    rules have the ServicePort: those of others say nothing of it.
    """

    lower: int
    upper: int
    nodes: int


def mean_over_nodes(found: WhatIf, service: int, groups: Collection[int]) -> MeanLoss:
    """Return the mean loss of a ServicePort when these nodes fail together."""
    incidence = found.nodes
    dead = {incidence.groups[each] for each in groups}
    alive = len(found.shown_at[service] - dead)
    rows = incidence.services[service]
    upper, lower = (_sum(rows, groups, dead, alive, upper=upper) for upper in (True, False))
    return MeanLoss(lower // max(1, alive), upper // max(1, alive), alive)


def _sum(
    rows: Collection[RouteRow], groups: Collection[int], dead: set[str], alive: int, *, upper: bool
) -> int:
    """Return the sum over living nodes of the highest loss of any route that each has."""

    def lost(row: RouteRow) -> int:
        return row.most(groups) if upper else row.least(groups)

    everywhere = max([lost(row) for row in rows if row.at is None], default=0)
    at_node: dict[str, int] = {}
    for row in rows:
        if row.at is not None and (number := lost(row)) > everywhere:
            for name in row.at - dead:
                at_node[name] = max(number, at_node.get(name, 0))
    return everywhere * (alive - len(at_node)) + sum(at_node.values())


def worst_at(found: WhatIf, row: RouteRow, dead: Collection[str]) -> tuple[str, ...]:
    """Return the nodes whose rules have a route, in order, without the dead ones."""
    names = found.vantages if row.at is None else sorted(row.at)
    return tuple(name for name in names if name not in dead)
