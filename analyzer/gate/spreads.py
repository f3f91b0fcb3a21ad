"""Topology spread constraints: which nodes and pods each of them counts.

Source: Kubernetes, pkg/scheduler/framework/plugins/podtopologyspread
(``nodeLabelsMatchSpreadConstraints``, ``matchNodeInclusionPolicies``); API reference, core/v1
TopologySpreadConstraint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from analyzer.gate.labels import is_empty, selects
from analyzer.gate.needs import is_selected, untolerated
from analyzer.gate.nodes import HOSTNAME, ZONE, SchedulingNode
from analyzer.gate.problem import Spread
from analyzer.gate.relations import PodRelations, alike
from analyzer.gate.templates import PodTemplate
from analyzer.parsers.api_objects import at, elements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def spreads(relations: PodRelations, number: int, template: PodTemplate) -> Iterator[Spread]:
    """Yield the DoNotSchedule constraints of a pod; `number` is its group."""
    given = elements(template.spec, "topologySpreadConstraints")
    wanted = [each for each in given if each["whenUnsatisfiable"] == "DoNotSchedule"]
    every = [relations.domains_of(each["topologyKey"]) for each in wanted]
    for each, domains in zip(wanted, every, strict=True):
        groups = _counted_groups(relations, template, each)
        counted = tuple(
            v
            for v, node in enumerate(relations.nodes)
            if all(of[v] >= 0 for of in every) and _counts(each, template.spec, node)
        )
        yield Spread(
            domains=domains,
            counted=counted,
            most=each["maxSkew"],
            least_domains=at(each, "minDomains") or 1,
            groups=groups,
            own=int(number in groups),
        )


def _counted_groups(
    relations: PodRelations, template: PodTemplate, constraint: object
) -> frozenset[int]:
    """Return the groups whose pods a topologySpreadConstraint counts."""
    selector, keys = at(constraint, "labelSelector"), elements(constraint, "matchLabelKeys")
    if is_empty(selector) and not any(key in template.labels for key in keys):
        return frozenset()  # common.go, ``countPodsMatchSelector``: no pods, and not all of them
    return frozenset(
        n
        for n, other in enumerate(relations.templates)
        if other.namespace == template.namespace
        and selects(selector, other.labels)
        and alike(template, other, keys)
    )


def soft_spreads(
    relations: PodRelations, number: int, template: PodTemplate
) -> Iterator[tuple[Sequence[int], int, frozenset[int]]]:
    """Yield the ScheduleAnyway constraints: domains, maxSkew, and the groups that count."""
    given = elements(template.spec, "topologySpreadConstraints")
    if not given and template.number is not None and template.workload is not None:
        # Source: plugin.go, ``systemDefaultConstraints``.
        yield relations.domains_of(HOSTNAME), 3, frozenset((number,))
        yield relations.domains_of(ZONE), 5, frozenset((number,))
    for each in given:
        if each["whenUnsatisfiable"] == "ScheduleAnyway":
            domains = relations.domains_of(each["topologyKey"])
            yield domains, each["maxSkew"], _counted_groups(relations, template, each)


def _counts(constraint: object, spec: Mapping[str, Any], node: SchedulingNode) -> bool:
    """Return whether a node counts for a constraint, by its policies."""
    honours = at(constraint, "nodeAffinityPolicy") != "Ignore"
    if honours and not is_selected(spec, node):
        return False
    return at(constraint, "nodeTaintsPolicy") != "Honor" or untolerated(spec, node) is None
