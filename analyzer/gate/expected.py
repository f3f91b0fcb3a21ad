"""The placement that the default scheduler's scores lead to.

One pod after the other, DaemonSets' first, then in the order of the manifests; of the nodes that
the filters leave the one with the highest score, of several the first, where the scheduler draws
one. Scores are those of the plugins of the default profile with their weights: TaintToleration
3, NodeAffinity 2, InterPodAffinity 2, PodTopologySpread 2, NodeResourcesFit (LeastAllocated) 1,
NodeResourcesBalancedAllocation 1. ImageLocality, volumes and extenders are left out.

Source: Kubernetes, pkg/scheduler/apis/config/v1/default_plugins.go, ``getDefaultPlugins``, and in
pkg/scheduler/framework/plugins noderesources/least_allocated.go, balanced_allocation.go,
podtopologyspread/scoring.go, interpodaffinity/scoring.go, helper/normalize_score.go.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from analyzer.gate.every import Ended, ended
from analyzer.gate.problem import PodGroup, Problem
from analyzer.gate.state import SchedulerState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_MOST: Final = 100
#: What a pod that requests none is taken to need, in thousandths of a CPU and in bytes.
#: Source: pkg/scheduler/util/pod_resources.go.
_UNTOLD: Final = {"cpu": 100, "memory": 200 << 20}


def expected_end(problem: Problem) -> Ended:
    """Return the placement if the scheduler follows its scores."""
    state = SchedulerState(problem)
    numbers = range(len(problem.groups))
    ordered = sorted(numbers, key=lambda each: not problem.groups[each].one_each)
    goes_on = True
    while goes_on:
        # A pod without a node is tried again when others are placed that it may have to be with.
        goes_on = False
        for g in ordered:
            while found := state.open(g):
                scores = _scores(state, problem.groups[g], found)
                best = max(zip(scores, found, strict=True), key=lambda each: (each[0], -each[1]))
                state.put(g, best[1])
                goes_on = True
    return ended(state)


def _scores(state: SchedulerState, group: PodGroup, nodes: Sequence[int]) -> list[float]:
    """Return the score of each of these nodes for a pod of a group."""
    wishes = group.wishes
    parts = (
        (3, _normalised([wishes.taints[v] for v in nodes], is_reversed=True)),
        (2, _normalised([wishes.nodes[v] for v in nodes], is_reversed=False)),
        (2, _beside(state, group, nodes)),
        (2, _spread(state, group, nodes)),
        (1, [_least_allocated(state, group, v) for v in nodes]),
        (1, [_balanced(state, group, v) for v in nodes]),
    )
    return [sum(weight * part[at] for weight, part in parts) for at in range(len(nodes))]


def _normalised(numbers: Sequence[int], *, is_reversed: bool) -> list[int]:
    most = max(numbers, default=0)
    if not most:
        return [_MOST if is_reversed else 0] * len(numbers)
    scaled = [_MOST * each // most for each in numbers]
    return [_MOST - each for each in scaled] if is_reversed else scaled


def _beside(state: SchedulerState, group: PodGroup, nodes: Sequence[int]) -> list[int]:
    totals = [0] * len(nodes)
    for weight, term in group.wishes.beside:
        held: dict[int, int] = {}
        for h in term.groups:
            for domain, number in zip(term.domains, state.counts[h], strict=True):
                if domain >= 0:
                    held[domain] = held.get(domain, 0) + number
        for at, v in enumerate(nodes):
            totals[at] += weight * held.get(term.domains[v], 0)
    least, most = min(totals), max(totals)
    if least == most:
        return [0] * len(nodes)
    return [_MOST * (each - least) // (most - least) for each in totals]


def _spread(state: SchedulerState, group: PodGroup, nodes: Sequence[int]) -> list[int]:
    if not group.wishes.spread:
        return [0] * len(nodes)
    totals = [0.0] * len(nodes)
    for domains, skew, groups in group.wishes.spread:
        held: dict[int, int] = {}
        for h in groups:
            for domain, number in zip(domains, state.counts[h], strict=True):
                held[domain] = held.get(domain, 0) + number
        weight = math.log(len({domains[v] for v in nodes if domains[v] >= 0}) + 2)
        for at, v in enumerate(nodes):
            if domains[v] >= 0:
                totals[at] += held.get(domains[v], 0) * weight + (skew - 1)
    rounded = [round(each) for each in totals]
    least, most = min(rounded), max(rounded)
    if not most:
        return [_MOST] * len(nodes)
    return [_MOST * (most + least - each) // most for each in rounded]


def _least_allocated(state: SchedulerState, group: PodGroup, v: int) -> int:
    found = [
        _MOST * max(0, left) // room for room, left in _after(state, group, v).values() if room
    ]
    return sum(found) // len(found) if found else 0


def _balanced(state: SchedulerState, group: PodGroup, v: int) -> int:
    used = [1 - max(0, left) / room for room, left in _after(state, group, v).values() if room]
    if len(used) < 2:  # noqa: PLR2004  # of one resource there is no balance
        return _MOST if used else 0
    mean = sum(used) / len(used)
    deviation = math.sqrt(sum((each - mean) ** 2 for each in used) / len(used))
    return int((1 - deviation) * _MOST)


def _after(state: SchedulerState, group: PodGroup, v: int) -> dict[str, tuple[int, int]]:
    """Return how much of cpu and memory a node has, and would have left with one pod more."""
    room, free = state.problem.room[v], state.free(v)
    return {
        key: (room[key], free[key] - group.requests.get(key, untold))
        for key, untold in _UNTOLD.items()
        if key in room
    }
