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
from analyzer.gate.relations import Relations, alike
from analyzer.gate.templates import Template
from analyzer.parsers.api_objects import at, elements, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def spreads(relations: Relations, number: int, template: Template) -> Iterator[Spread]:
    """Give the constraints of a pod that must be kept; `number` is its group.

    Raises:
        ValueError: one of them is malformed.
    """
    given = elements(template.spec, "topologySpreadConstraints")
    for each in given:
        if (how := at(each, "whenUnsatisfiable")) not in ("DoNotSchedule", "ScheduleAnyway"):
            raise ValueError(
                f"topologySpreadConstraints: whenUnsatisfiable {how!r} is neither "
                "DoNotSchedule nor ScheduleAnyway"
            )
    wanted = [each for each in given if each["whenUnsatisfiable"] == "DoNotSchedule"]
    keys = [text(at(each, "topologyKey")) or "" for each in wanted]
    every = [relations.domains_of(key) for key in keys]
    for each, domains in zip(wanted, every, strict=True):
        most = at(each, "maxSkew")
        if type(most) is not int or most < 1:
            raise ValueError(f"topologySpreadConstraints: maxSkew {most!r} is no number from 1")
        least = at(each, "minDomains")
        if least is not None and (type(least) is not int or least < 1):
            raise ValueError(f"topologySpreadConstraints: minDomains {least!r} is no number from 1")
        groups = _counted_groups(relations, template, each)
        counted = tuple(
            v
            for v, node in enumerate(relations.nodes)
            if all(of[v] >= 0 for of in every) and _counts(each, template.spec, node)
        )
        yield Spread(
            domains=domains,
            counted=counted,
            most=most,
            least_domains=1 if least is None else least,
            groups=groups,
            own=int(number in groups),
        )


def _counted_groups(relations: Relations, template: Template, constraint: object) -> frozenset[int]:
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
    relations: Relations, number: int, template: Template
) -> Iterator[tuple[Sequence[int], int, frozenset[int]]]:
    """Give those that shape scores alone: domains, maxSkew, and the groups whose pods count."""
    given = elements(template.spec, "topologySpreadConstraints")
    if not given and template.number is not None and template.workload is not None:
        # Source: plugin.go, ``systemDefaultConstraints``.
        yield relations.domains_of(HOSTNAME), 3, frozenset((number,))
        yield relations.domains_of(ZONE), 5, frozenset((number,))
    for each in given:
        key, most = text(at(each, "topologyKey")), at(each, "maxSkew")
        if at(each, "whenUnsatisfiable") == "ScheduleAnyway" and key and type(most) is int:
            yield relations.domains_of(key), most, _counted_groups(relations, template, each)


def _counts(constraint: object, spec: Mapping[str, Any], node: SchedulingNode) -> bool:
    """Tell whether a node counts for a constraint, by its policies."""
    honours = at(constraint, "nodeAffinityPolicy") != "Ignore"
    if honours and not is_selected(spec, node):
        return False
    return at(constraint, "nodeTaintsPolicy") != "Honor" or untolerated(spec, node) is None
