"""Why a placement is allowed, and why pods are unschedulable, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from analyzer.gate.labels import is_empty
from analyzer.gate.problem import PodGroup, Problem
from analyzer.parsers.api_objects import at, elements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def why_allowed(spec: Mapping[str, Any]) -> str:
    """Return which constraints of a pod's spec allow this placement, beyond those of one node."""
    required, rather = [*_apart(spec, required=True)], [*_apart(spec, required=False)]
    if required:
        return f"allowed by {' and '.join(required)}"
    if rather:
        return f"{' and '.join(rather)}: only a preference, which the scheduler may ignore"
    return "no required podAntiAffinity and no topologySpreadConstraints keep its pods apart"


def _apart(spec: Mapping[str, Any], *, required: bool) -> Iterator[str]:
    affinity = spec.get("affinity")
    how = "required" if required else "preferred"
    for kind in ("podAntiAffinity", "podAffinity"):
        for each in elements(affinity, kind, _REQUIRED if required else _PREFERRED):
            term = each if required else at(each, "podAffinityTerm")
            yield f"{how} {kind} on {at(term, 'topologyKey')}"
    wanted = "DoNotSchedule" if required else "ScheduleAnyway"
    for each in elements(spec, "topologySpreadConstraints"):
        if at(each, "whenUnsatisfiable") == wanted:
            key, most = at(each, "topologyKey"), at(each, "maxSkew")
            counts = ", its labelSelector {} counts no pods" if _counts_none(each) else ""
            yield f"topologySpreadConstraints on {key} (maxSkew {most}, {wanted}{counts})"


def _counts_none(constraint: object) -> bool:
    keys = elements(constraint, "matchLabelKeys")
    return is_empty(at(constraint, "labelSelector")) and not keys


def why_pending(problem: Problem, group: PodGroup) -> str:
    """Return why pods are unschedulable, as an event of the scheduler words it."""
    if group.stuck is not None:
        return group.stuck
    every = len(problem.nodes)
    told = Counter(group.refused.values()).most_common()
    parts = [f"{number:,} {why}" for why, number in told]
    if group.nodes:
        parts.append(f"{len(group.nodes):,} where its constraints allow no more pods")
    return f"of {every:,} nodes: {', '.join(parts)}"
