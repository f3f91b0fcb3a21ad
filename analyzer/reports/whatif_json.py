"""``kubeodds/whatif/1``: what each failure costs, and what each ServicePort survives.

Worst losses are exact, but that numbers of more than 1,024 bits are rounded outwards to 64: where a
DaemonSet has 5,000 endpoints each has 40,000 digits. Means are floats, right to 12 digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import starmap
from typing import Any, Final

from analyzer.failure.incidence import Incidence, RouteRow
from analyzer.failure.smallest import Survival
from analyzer.failure.thresholds import Breach
from analyzer.failure.vantages import mean_over_nodes
from analyzer.failure.whatif import Failure, FailureKind, Sets
from analyzer.kubeproxy.view import ServicePort
from analyzer.model.probability import Bounds, Dyadic
from analyzer.model.ternary import Ternary
from analyzer.outage.api_servers import ApiProcess
from analyzer.reports import json_values as values
from analyzer.reports.answers import WhatIfAnswer
from analyzer.reports.control_plane_json import control_plane, topology
from analyzer.reports.freshness import freshness_json
from analyzer.reports.predicted_json import dumps, prediction
from analyzer.reports.route_networks import network_fields
from analyzer.reports.whatif_order import mean_loss
from analyzer.reports.whatif_vantages import dead_nodes, mean_numbers, names_at

_VERSION: Final = 1
#: Numbers with more bits are rounded to this many.
_MOST_BITS: Final = 1_024
_ROUNDED_TO: Final = 64


def render(answer: WhatIfAnswer) -> Iterator[str]:
    """Yield the failures and the ServicePorts one by one."""
    found = answer.found
    writer = _Writer(answer)
    vantage = [] if answer.view.node is None else [answer.view.node]
    vantage = [*found.vantages] or vantage
    return values.document(
        "whatif",
        {
            "vantage": values.encode(vantage),
            "freshness": values.encode(freshness_json(answer.freshness)),
            "service_ports": values.encode(found.nodes.counted),
            "failures": map(writer.failure, found.failures()),
            "sets": map(writer.sets, found.sets),
            "services": filter(None, map(writer.service, range(len(found.services)))),
            "no_endpoints": (values.encode(each.name.text) for each in writer.without()),
            "no_endpoints_families": (
                values.encode(values.family(each.version)) for each in writer.without()
            ),
            "lost_now": starmap(writer.lost_now, answer.lost_now.items()),
            "broken": map(writer.breach, answer.breaches),
            "control_plane": values.encode(topology(answer)),
            "api_processes": map(writer.process, answer.api_processes),
            "uncertain_endpoints": values.encode(list(found.unplaced)),
            "not_judged": map(values.encode, answer.not_judged),
            "cut": values.encode(answer.view.lacks_some),
            "interrupted": values.encode(found.is_interrupted),
            "prediction": values.encode(prediction(answer.prediction)),
            "dumps": values.encode(dumps(answer.prediction)),
            "diagnostics": values.diagnostics(answer.diagnostics),
        },
        _VERSION,
    )


class _Writer:
    """Writes the entries of the lists."""

    def __init__(self, answer: WhatIfAnswer) -> None:
        self._answer = answer
        self._found = answer.found

    def failure(self, failure: Failure) -> str:
        """Return what one failure costs, encoded."""
        cost = failure.cost
        lower, upper = mean_loss(self._answer, cost)
        worst = failure.worst
        loses = worst is not None and bool(worst.upper) and cost.row is not None
        most = self._found.service(cost.row) if loses and cost.row is not None else None
        silenced = [self._found.services[each] for each in cost.silenced]
        return values.encode(
            {
                **_failing(failure.kind, failure.names),
                "takes_vantage": failure.takes_own,
                "worst": None if most is None else most.name.text,
                "worst_family": None if most is None else values.family(most.version),
                "worst_loss": _loss(worst, cost.row) if loses else None,
                "mean_loss": {"lower": lower, "upper": upper},
                "at": names_at(self._answer, cost.row, dead_nodes(self._answer, failure)),
                "silenced": [each.name.text for each in silenced],
                "silenced_families": [values.family(each.version) for each in silenced],
                "degraded": cost.degraded,
                "unknown": cost.unknown,
                "control_plane": control_plane(self._answer.control_plane_after(failure)),
            }
        )

    def sets(self, sets: Sets) -> str:
        """Return the findings for all sets of one size, encoded."""
        most = sets.most
        return values.encode(
            {
                "size": sets.size,
                "number": sets.number,
                "silencing": sets.silencing,
                "complete": sets.is_complete,
                "most_silenced": {
                    "nodes": _names(self._found.nodes, most.groups),
                    "silenced": most.silenced,
                    "at_most": most.at_most,
                },
            }
        )

    def service(self, at: int) -> str:
        """Return what one ServicePort survives, encoded; empty without endpoints."""
        found = self._found
        survival = found.survival(at)
        if survival is None:
            return ""
        nodes = found.nodes
        worst = None
        if survival.worst is not None and survival.worst_row is not None:
            loss = survival.worst_row.loss((survival.worst,))
            worst = {
                "node": nodes.groups[survival.worst],
                "loss": _loss(loss, survival.worst_row),
                **self._at_every_node(at, survival),
            }
        of_zones = found.survival_of_zones(at)
        zones = None
        if of_zones is not None and found.zones is not None:
            zones = _survival(of_zones, found.zones)
        return values.encode(
            {
                **values.name(found.services[at]),
                **_survival(survival, nodes),
                "total": survival.is_total,
                "silenced_route": None if survival.set_row is None else _way(survival.set_row),
                "weakest_route": _way(survival.row),
                "worst_single": worst,
                "zones": zones,
            }
        )

    def _at_every_node(self, at: int, survival: Survival) -> dict[str, Any]:
        """Return at which nodes that is, and the mean over all; null of one node's rules."""
        found = self._found
        if not found.vantages or survival.worst is None:
            return {"at": None, "mean_over_nodes": None}
        mean = mean_over_nodes(found, at, (survival.worst,))
        names = names_at(self._answer, survival.worst_row, (found.nodes.groups[survival.worst],))
        return {"at": names, "mean_over_nodes": mean_numbers(mean)}

    def without(self) -> list[ServicePort]:
        """Return the ServicePorts without endpoints."""
        lost = self._answer.lost_now
        return [service for at, service in self._found.uncounted() if at not in lost]

    def lost_now(self, at: int, lost: Ternary) -> str:
        """Return a ServicePort with a route on which all flows are lost already, encoded."""
        return values.encode(
            {**values.name(self._found.services[at]), "certain": lost is Ternary.TRUE}
        )

    def breach(self, breach: Breach) -> str:
        """Return how a threshold is exceeded, encoded."""
        none = breach.none
        return values.encode(
            {
                "threshold": _threshold(breach),
                "failure": None if breach.kind is None else _failing(breach.kind, breach.names),
                "service": values.name(breach.service),
                "route": _way(breach.row),
                "lost": None if none is None else values.probability(rounded(none, up=True)),
                "survives": breach.survives,
            }
        )

    def process(self, process: ApiProcess) -> str:
        """Return what one API server's process costs default/kubernetes, encoded."""
        return values.encode(
            {
                "endpoint": str(process.endpoint),
                "node": process.node,
                **values.name(process.loss.service),
                "loss": values.bounds(process.loss.worst),
            }
        )


def _threshold(breach: Breach) -> str:
    if breach.kind is not None:
        return "max-loss"
    return "min-survives-zones" if breach.of_zones else "min-survives"


def _failing(kind: FailureKind, names: tuple[str, ...]) -> dict[str, Any]:
    is_zone = kind is FailureKind.ZONE
    return {
        "kind": kind.value,
        "nodes": [] if is_zone else list(names),
        "zones": list(names) if is_zone else [],
    }


def _survival(survival: Survival, groups: Incidence) -> dict[str, Any]:
    return {
        "survives": survival.survives,
        "survives_at_most": survival.at_most,
        "smallest_sets": [_names(groups, each) for each in survival.sets],
    }


def _names(groups: Incidence, places: tuple[int, ...]) -> list[str]:
    return [groups.groups[each] for each in places]


def _loss(loss: Bounds | None, row: RouteRow | None) -> dict[str, Any]:
    assert loss is not None  # only used if something is lost
    assert row is not None
    lower, upper = rounded(loss.lower), rounded(loss.upper, up=True)
    return {"lower": values.probability(lower), "upper": values.probability(upper), **_way(row)}


def _way(row: RouteRow) -> dict[str, Any]:
    route = row.route
    return {
        "frontend": values.frontend(route.frontend),
        "source": route.source.value,
        **network_fields(route),
    }


def rounded(share: Dyadic, *, up: bool = False) -> Dyadic:
    """Return a share, rounded if its exact form would be very long."""
    if share.exponent <= _MOST_BITS:
        return share
    shift = share.exponent - _ROUNDED_TO
    return Dyadic.of((share.numerator >> shift) + up, _ROUNDED_TO)
