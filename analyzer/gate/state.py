"""The pods placed so far, and the nodes that pass the scheduler's filters for the next one.

Source: Kubernetes, pkg/scheduler/framework/plugins: noderesources/fit.go, ``fitsRequest``;
nodeports; interpodaffinity/filtering.go, ``satisfyPodAffinity``,
``satisfyExistingPodsAntiAffinity``; podtopologyspread/filtering.go, ``Filter``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from analyzer.gate.problem import PodGroup, Problem, Spread, Term

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    #: How many pods of each group are on each node.
    PodCounts: TypeAlias = tuple[tuple[int, ...], ...]


class SchedulerState:
    """Pods on nodes, as the scheduler has placed them so far.

    Attributes:
        counts: by group, and in it by node.
        left: by group, how many are still to be placed.
    """

    def __init__(self, problem: Problem, groups: Iterable[int] | None = None) -> None:
        """Begin with what runs already; `groups` are to be placed: all, or these."""
        self.problem = problem
        size = len(problem.nodes)
        self.counts = [[g.fixed.get(v, 0) for v in range(size)] for g in problem.groups]
        asked = frozenset(range(len(problem.groups)) if groups is None else groups)
        self.left = [
            0 if g.stuck is not None or n not in asked else g.number
            for n, g in enumerate(problem.groups)
        ]
        self._free = [dict(room) for room in problem.room]
        for group in problem.groups:
            for v, number in group.fixed.items():
                self._take(group, v, number)

    def put(self, g: int, v: int) -> None:
        """Place a pod."""
        self.counts[g][v] += 1
        self.left[g] -= 1
        self._take(self.problem.groups[g], v, 1)

    def remove(self, g: int, v: int) -> None:
        """Remove the last pod that was placed there."""
        self.counts[g][v] -= 1
        self.left[g] += 1
        self._take(self.problem.groups[g], v, -1)

    def _take(self, group: PodGroup, v: int, number: int) -> None:
        free = self._free[v]
        for key, need in group.requests.items():
            if key in free:
                free[key] -= need * number

    def free(self, v: int) -> dict[str, int]:
        """Return how much of each resource a node has left."""
        return self._free[v]

    def open(self, g: int) -> list[int]:
        """Return the nodes that are feasible for a pod of a group now."""
        group = self.problem.groups[g]
        if not self.left[g]:
            return []
        counts = self.counts
        taken = [counts[h] for h in group.conflicting]
        if group.one_each:
            taken.append(counts[g])
        found = [
            v for v in group.nodes if not any(row[v] for row in taken) and self._has_room(group, v)
        ]
        for term in (*group.anti, *group.kept_from):
            held = self._held(term)
            if held:
                found = [v for v in found if term.domains[v] not in held]
        if group.affine is not None:
            found = self._beside(g, group, found)
        for spread in group.spread:
            found = [*self._within(spread, found)]
        return found

    def _has_room(self, group: PodGroup, v: int) -> bool:
        free = self._free[v]
        return all(free.get(key, need) >= need for key, need in group.requests.items())

    def _held(self, term: Term) -> set[int]:
        """Return the domains in which pods are that a term means."""
        held: set[int] = set()
        for h in term.groups:
            held.update(
                d for d, n in zip(term.domains, self.counts[h], strict=True) if n and d >= 0
            )
        return held

    def _beside(self, g: int, group: PodGroup, found: list[int]) -> list[int]:
        affine = group.affine or frozenset()
        held = [self._held(Term(term.domains, affine)) for term in group.affinity]
        if not any(held):
            # The first of pods with affinity to each other may go anywhere; those on nodes without
            # the label do not count.
            return found if g in affine else []
        for term, domains in zip(group.affinity, held, strict=True):
            found = [v for v in found if term.domains[v] in domains]
        return found

    def _within(self, spread: Spread, found: Iterable[int]) -> Iterator[int]:
        numbers: dict[int, int] = {}
        rows = [self.counts[h] for h in spread.groups]
        for v in spread.counted:
            domain = spread.domains[v]
            numbers[domain] = numbers.get(domain, 0) + sum(row[v] for row in rows)
        few = len(numbers) < spread.least_domains
        least = 0 if few else min(numbers.values(), default=0)
        for v in found:
            if numbers.get(spread.domains[v], 0) + spread.own - least <= spread.most:
                yield v

    def frozen(self) -> PodCounts:
        """Return the counts as an immutable value."""
        return tuple(tuple(row) for row in self.counts)
