"""What would help: constraints and replicas that are tried on a workload, and judged again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from analyzer.gate.cases import Judge
from analyzer.gate.failing import Failing
from analyzer.gate.nodes import HOSTNAME, ZONE
from analyzer.gate.problem import Problem
from analyzer.gate.services import GatedService
from analyzer.gate.templates import Template
from analyzer.gate.verdict import Judged, Thresholds, judged_with
from analyzer.gate.worst import placements
from analyzer.model.value import replace, value
from analyzer.parsers.api_objects import at, elements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    #: Makes the problem that changed templates make.
    Compile = Callable[[Sequence[Template]], Problem]

_SCALABLE = frozenset({"Deployment", "ReplicaSet", "StatefulSet"})


@value(kw_only=True)
class Fix:
    """A change of the manifests, and how the Service fares then.

    Attributes:
        says: what to change, in few words.
        then: the verdict on it.
    """

    says: str
    then: Judged

    @property
    def is_enough(self) -> bool:
        """Whether no threshold is broken then, and no pod is without a node."""
        return not self.then.violations and not self.then.pending


def fix_of(
    broken: Judged,
    templates: Sequence[Template],
    compile_: Compile,
    failing: Failing,
    judge: Judge,
    thresholds: Thresholds,
) -> Fix | None:
    """Return the first change with which all thresholds are kept, else that which loses least.

    None: none that was tried is better.
    """
    tried = []
    for says, changed, service in _changes(broken, templates, failing):
        problem = compile_(changed)
        found = placements(problem, service.groups, failing, want_every=service.prefers_places)
        then = judged_with(service, found, problem, failing, judge, thresholds)
        fix = Fix(says=says, then=then)
        if fix.is_enough:
            return fix
        tried.append(fix)
    better = [each for each in tried if not each.then.pending and _loss(each.then) < _loss(broken)]
    return min(better, key=lambda each: _loss(each.then), default=None)


def _loss(found: Judged) -> tuple[Any, ...]:
    """Return what verdicts are ordered by, the best first."""
    losses = [
        (each.case.found is None, each.case.loss(each.kind).upper)
        for each in found.worst
        if each.kind
    ]
    return (
        found.pending,
        len(found.violations),
        max(losses, default=(False, None)),
        -found.fewest.case.survives,
    )


def _changes(
    broken: Judged, templates: Sequence[Template], failing: Failing
) -> Iterator[tuple[str, list[Template], GatedService]]:
    """Give changes with what they say, the mildest first."""
    service = broken.service
    own = [g for g in service.groups if templates[g].workload is not None]
    if broken.pending and any(_is_counting_taints(templates[g]) for g in own):
        honest = [_honouring(each) if g in own else each for g, each in enumerate(templates)]
        yield "nodeTaintsPolicy Honor in its topologySpreadConstraints", honest, service
    near = at(service.item, "spec", "trafficDistribution")
    if near:
        spec = {k: v for k, v in service.item["spec"].items() if k != "trafficDistribution"}
        without = replace(service, item={**service.item, "spec": spec})
        yield f"without trafficDistribution {near}", [*templates], without
    if not all(_is_scalable(templates[g]) for g in own) or not own:
        return
    keys = [(HOSTNAME,)] + ([(ZONE, HOSTNAME)] if len(failing.zones) > 1 else [])
    for more in range(3):
        for which in keys:
            changed = [*templates]
            for g in own:
                changed[g] = _spread(templates[g], which, more)
            yield _says([templates[g] for g in own], which, more), changed, service


def _is_counting_taints(template: Template) -> bool:
    """Tell whether nodes that its pods do not tolerate count as empty domains."""
    constraints = elements(template.spec, "topologySpreadConstraints")
    return any(at(each, "nodeTaintsPolicy") != "Honor" for each in constraints)


def _honouring(template: Template) -> Template:
    constraints = [
        {**each, "nodeTaintsPolicy": "Honor"}
        for each in elements(template.spec, "topologySpreadConstraints")
    ]
    return replace(template, spec={**template.spec, "topologySpreadConstraints": constraints})


def _is_scalable(template: Template) -> bool:
    return template.workload is not None and template.workload.kind in _SCALABLE


def _says(templates: Sequence[Template], keys: Sequence[str], more: int) -> str:
    named = " and ".join(keys)
    told = [f"{(each.number or 0) + more}" for each in templates]
    if len(templates) > 1:
        told = [f"{n} for {each.name}" for n, each in zip(told, templates, strict=True)]
    number = f"replicas {', '.join(told)} and " if more else ""
    kind = "a topologySpreadConstraint" if len(keys) == 1 else "topologySpreadConstraints"
    return f"{number}{kind} on {named} (maxSkew 1, DoNotSchedule, nodeTaintsPolicy Honor)"


def _spread(template: Template, keys: Sequence[str], more: int) -> Template:
    """Return pods with constraints on these keys, in place of those that they have on them."""
    selector: Mapping[str, Any] = (
        at(template.workload.manifest.item, "spec", "selector") if template.workload else None
    ) or {"matchLabels": dict(template.labels)}
    kept = [
        each
        for each in elements(template.spec, "topologySpreadConstraints")
        if at(each, "topologyKey") not in keys
    ]
    added = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "nodeTaintsPolicy": "Honor",
            "labelSelector": selector,
        }
        for key in keys
    ]
    return replace(
        template,
        spec={**template.spec, "topologySpreadConstraints": [*kept, *added]},
        number=(template.number or 0) + more,
    )
