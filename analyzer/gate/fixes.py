"""Possible fixes: constraints and replicas, each applied to a workload and evaluated.

Smaller changes are tried before those that have them as a part: nothing is advised that adds
nothing to it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

from analyzer.gate.cases import CaseEvaluator
from analyzer.gate.evaluation import EvaluatedService, Thresholds, WorstCase, evaluated_with
from analyzer.gate.failing import Failing
from analyzer.gate.nodes import HOSTNAME, ZONE
from analyzer.gate.problem import Problem
from analyzer.gate.scaling import scaled_placements
from analyzer.gate.services import GatedService
from analyzer.gate.templates import PodTemplate, remade
from analyzer.gate.workloads import Workload
from analyzer.model.value import replace, value
from analyzer.parsers.api_objects import at, elements
from analyzer.parsers.manifests import Manifest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    #: Makes the problem that changed templates make.
    Compile = Callable[[Sequence[PodTemplate]], Problem]

_SCALABLE = frozenset({"Deployment", "ReplicaSet", "StatefulSet"})
#: As many more replicas are tried.
_MOST_MORE = 2
#: For each change, if an autoscaler changes numbers: most pods times nodes.
_MOST_WORK = 8_000


@value
class ManifestPatch:
    """A change to one manifest, as a JSON merge patch (RFC 7386)."""

    manifest: Manifest
    merge: Mapping[str, Any]


@value(kw_only=True)
class Fix:
    """A change to the manifests, and what the Service loses then.

    Attributes:
        says: what to change, in few words.
        then: its evaluation.
    """

    says: str
    patches: tuple[ManifestPatch, ...]
    then: EvaluatedService

    @property
    def is_enough(self) -> bool:
        """Whether all thresholds are met then, and no pod is Pending."""
        return not self.then.violations and not self.then.pending


@value(kw_only=True)
class _Change:
    says: str
    templates: Sequence[PodTemplate]
    service: GatedService
    patches: tuple[ManifestPatch, ...]


def fix_of(
    broken: EvaluatedService,
    templates: Sequence[PodTemplate],
    compile_: Compile,
    failing: Failing,
    evaluator: CaseEvaluator,
    thresholds: Thresholds,
) -> Fix | None:
    """Return the first change that meets all thresholds, else the one with the least loss.

    None if no change that was tried is proven to be better.
    """
    tried = []
    for change in _changes(broken, templates, failing):
        problem = compile_(change.templates)
        service = change.service
        found = scaled_placements(
            problem,
            service.groups,
            failing,
            want_every=service.prefers_places,
            work=_MOST_WORK,
        )
        then = evaluated_with(service, found, problem, failing, evaluator, thresholds)
        fix = Fix(says=change.says, patches=change.patches, then=then)
        if fix.is_enough:
            return fix
        if not then.pending and _is_better(then, broken):
            tried.append(fix)
    return min(tried, key=lambda each: _rank(each.then), default=None)


def _is_better(then: EvaluatedService, broken: EvaluatedService) -> bool:
    """Return whether what breaks a threshold is less for sure, and no failure costs more."""
    pairs = [*zip(then.worst, broken.worst, strict=True)]
    if any(_at_most(now) > _loss(before) for now, before in pairs):
        return False
    violated = {id(each.found) for each in broken.violations}
    if any(_at_most(now) < _loss(before) for now, before in pairs if id(before) in violated):
        return True
    more = _survived(then.fewest) > broken.fewest.case.survives
    return more and id(broken.fewest) in violated


def _rank(found: EvaluatedService) -> tuple[int, Fraction, int]:
    """Return what evaluations are ordered by, the best first."""
    return (
        len(found.violations),
        max(map(_at_most, found.worst), default=Fraction(0)),
        -_survived(found.fewest),
    )


def _loss(found: WorstCase) -> Fraction:
    """Return what the worst placement that was found loses."""
    assert found.kind is not None  # of a failure
    if found.case.found is None:
        return Fraction(1)
    return found.case.loss(found.kind).upper.as_fraction()


def _at_most(found: WorstCase) -> Fraction:
    """Return what no placement exceeds."""
    return _loss(found) if found.most is None else max(found.most, _loss(found))


def _survived(found: WorstCase) -> int:
    """Return the number of nodes that are survived for sure."""
    return found.case.survives if found.is_proven else found.surely


# --- what is tried -----------------------------------------------------------


def _changes(
    broken: EvaluatedService, templates: Sequence[PodTemplate], failing: Failing
) -> Iterator[_Change]:
    """Yield changes, the mildest first."""
    service = broken.service
    every = [templates[g].workload for g in service.groups]
    own = [*{id(each): each for each in every if each is not None}.values()]
    counting = [each for each in own if _is_counting_taints(each)]
    if broken.pending and counting:
        changed = templates
        patches = []
        for each in counting:
            honest = _honouring(each)
            changed = remade(changed, each, replace(each, spec=_with(each, honest)))
            patches.append(_patch_of(each, honest, 0))
        says = "nodeTaintsPolicy Honor in its topologySpreadConstraints"
        yield _Change(says=says, templates=changed, service=service, patches=tuple(patches))
    near = at(service.item, "spec", "trafficDistribution")
    if near:
        spec = {k: v for k, v in service.item["spec"].items() if k != "trafficDistribution"}
        yield _Change(
            says=f"without trafficDistribution {near}",
            templates=templates,
            service=replace(service, item={**service.item, "spec": spec}),
            patches=(ManifestPatch(service.manifest, {"spec": {"trafficDistribution": None}}),),
        )
    if not own or not all(each.kind in _SCALABLE for each in own):
        return
    keys: list[tuple[str, ...]] = [(), (HOSTNAME,)]
    if len(failing.zones) > 1:
        keys += [(ZONE,), (ZONE, HOSTNAME)]
    for more, which in itertools.product(range(_MOST_MORE + 1), keys):
        if more or which:
            yield _spread(service, templates, own, which, more)


def _is_counting_taints(workload: Workload) -> bool:
    """Return whether nodes that its pods do not tolerate count as empty domains."""
    constraints = elements(workload.spec, "topologySpreadConstraints")
    return any(at(each, "nodeTaintsPolicy") != "Honor" for each in constraints)


def _honouring(workload: Workload) -> list[Any]:
    return [
        {**each, "nodeTaintsPolicy": "Honor"}
        for each in elements(workload.spec, "topologySpreadConstraints")
    ]


def _spread(
    service: GatedService,
    templates: Sequence[PodTemplate],
    own: Sequence[Workload],
    keys: Sequence[str],
    more: int,
) -> _Change:
    """Return the change that gives workloads constraints on these keys, and replicas more."""
    patches: list[ManifestPatch] = []
    for each in own:
        constraints = _constraints(each, keys) if keys else None
        spec = each.spec if constraints is None else _with(each, constraints)
        least = (each.replicas or 0) + more
        changed = replace(each, spec=spec, replicas=least, most=max(least, each.most))
        templates = remade(templates, each, changed)
        of_workload = 0 if each.scaler is not None else more
        if constraints is not None or of_workload:
            patches.append(_patch_of(each, constraints, of_workload))
        if more and each.scaler is not None:
            patches.append(_patch_of_scaler(each.scaler, least, max(least, each.most)))
    says = _says(own, keys, more)
    return _Change(says=says, templates=templates, service=service, patches=tuple(patches))


def _says(own: Sequence[Workload], keys: Sequence[str], more: int) -> str:
    told = []
    for each in own if more else ():
        what = "replicas" if each.scaler is None else "minReplicas"
        number = f"{what} {(each.replicas or 0) + more:,}"
        told.append(number if len(own) == 1 else f"{number} for {each.name}")
    if keys:
        kind = "a topologySpreadConstraint" if len(keys) == 1 else "topologySpreadConstraints"
        named = " and ".join(keys)
        told.append(f"{kind} on {named} (maxSkew 1, DoNotSchedule, nodeTaintsPolicy Honor)")
    return " and ".join([", ".join(told[:-1]), told[-1]] if told[1:] else told)


def _constraints(workload: Workload, keys: Sequence[str]) -> list[Any]:
    """Return constraints on these keys, in place of those that there are on them."""
    kept = [
        each
        for each in elements(workload.spec, "topologySpreadConstraints")
        if at(each, "topologyKey") not in keys
    ]
    added = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "nodeTaintsPolicy": "Honor",
            "labelSelector": workload.manifest.item["spec"]["selector"],
        }
        for key in keys
    ]
    return [*kept, *added]


def _with(workload: Workload, constraints: Sequence[Any]) -> Mapping[str, Any]:
    return {**workload.spec, "topologySpreadConstraints": constraints}


def _patch_of(workload: Workload, constraints: Sequence[Any] | None, more: int) -> ManifestPatch:
    spec: dict[str, Any] = {"replicas": (workload.replicas or 0) + more} if more else {}
    if constraints is not None:
        template = {"spec": {"topologySpreadConstraints": constraints}}
        is_pod = workload.kind == "Pod"
        spec = {**spec, **(template["spec"] if is_pod else {"template": template})}
    return ManifestPatch(workload.manifest, {"spec": spec})


def _patch_of_scaler(scaler: Manifest, least: int, most: int) -> ManifestPatch:
    return ManifestPatch(scaler, {"spec": {"minReplicas": least, "maxReplicas": most}})
