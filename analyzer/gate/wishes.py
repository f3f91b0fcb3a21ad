"""Preferences of pods: they affect the scheduler's scores and exclude no node.

Source: Kubernetes, pkg/scheduler/framework/plugins: nodeaffinity, tainttoleration,
interpodaffinity, podtopologyspread, each ``Score``.
"""

from __future__ import annotations

from analyzer.advice.takers import tolerates
from analyzer.gate.labels import meets_term
from analyzer.gate.problem import Term, Wishes
from analyzer.gate.relations import PodRelations
from analyzer.gate.spreads import soft_spreads
from analyzer.gate.templates import PodTemplate
from analyzer.parsers.api_objects import at, elements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def wishes_of(relations: PodRelations, number: int, template: PodTemplate) -> Wishes:
    """Return the preferences of a pod; `number` is its group."""
    spec, affinity = template.spec, template.spec.get("affinity")
    rather = elements(affinity, "nodeAffinity", _PREFERRED)
    tolerations = elements(spec, "tolerations")
    beside = [
        (
            sign * each["weight"],
            Term(relations.domains_of(term["topologyKey"]), relations.meant(template, term)),
        )
        for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1))
        for each in elements(affinity, kind, _PREFERRED)
        for term in (each["podAffinityTerm"],)
    ]
    return Wishes(
        nodes=tuple(
            sum(
                each["weight"]
                for each in rather
                if meets_term(at(each, "preference"), node.name, node.labels)
            )
            for node in relations.nodes
        ),
        taints=tuple(
            sum(
                taint[2] == "PreferNoSchedule"
                and not any(tolerates(each, taint) for each in tolerations)
                for taint in node.taints
            )
            for node in relations.nodes
        ),
        beside=tuple(beside),
        spread=tuple(soft_spreads(relations, number, template)),
    )
