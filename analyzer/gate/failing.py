"""Which nodes fail together, for each kind of failure that is evaluated."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Sequence

from analyzer.failure.whatif import FailureKind
from analyzer.gate.problem import Problem
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_MOST_SETS: Final = 2_000


@value
class Failing:
    """Failures of each kind, as sets of node indices.

    Attributes:
        kinds: those that are evaluated, in the order of reports.
        depth: how many nodes are lost together as a set.
        zones: the nodes of each zone.
        control_plane: its nodes.
    """

    kinds: tuple[FailureKind, ...]
    depth: int
    zones: tuple[frozenset[int], ...]
    control_plane: frozenset[int]

    def most(self, kind: FailureKind, held: Sequence[int]) -> int:
        """Return the most pods that one failure of a kind can take, given the pods on each node."""
        match kind:
            case FailureKind.NODE:
                return max(held, default=0)
            case FailureKind.SET:
                return sum(sorted(held)[-self.depth :])
            case FailureKind.ZONE:
                return max((sum(held[v] for v in zone) for zone in self.zones), default=0)
            case FailureKind.CONTROL_PLANE:
                return sum(held[v] for v in self.control_plane)

    def sets(self, kind: FailureKind, problem: Problem) -> Iterable[frozenset[int]] | None:
        """Return the failures of a kind, equivalent ones once; None if too many."""
        match kind:
            case FailureKind.NODE:
                return sets_of(problem, 1)
            case FailureKind.SET:
                return sets_of(problem, self.depth)
            case FailureKind.ZONE:
                return self.zones
            case FailureKind.CONTROL_PLANE:
                return (self.control_plane,)


def failing_of(
    problem: Problem, control_plane: Collection[str], kinds: Collection[FailureKind], depth: int
) -> Failing:
    """Return the failures to evaluate: zones if there are several, the control plane if known."""
    # A node that does not say its zone may be in any.
    told = problem.zones()
    known = {v for each in told.values() for v in each}
    untold = [v for v in range(len(problem.nodes)) if v not in known]
    zones = tuple(frozenset([*each, *untold]) for each in told.values())
    control = frozenset(v for v, node in enumerate(problem.nodes) if node.name in control_plane)
    asked = [
        kind
        for kind, is_there in (
            (FailureKind.NODE, len(problem.nodes) > 1),
            (FailureKind.ZONE, len(zones) > 1),
            (FailureKind.CONTROL_PLANE, bool(control) and len(control) < len(problem.nodes)),
            (FailureKind.SET, 1 < depth < len(problem.nodes)),
        )
        if kind in kinds and is_there
    ]
    return Failing(tuple(asked), depth, zones, control)


def sets_of(problem: Problem, size: int) -> list[frozenset[int]] | None:
    """Return sets of `size` nodes, equivalent ones once; None if too many."""
    classes: dict[int, list[int]] = {}
    for v, number in enumerate(problem.classes):
        classes.setdefault(number, []).append(v)
    if math.comb(len(classes) + size - 1, size) > _MOST_SETS:
        return None
    return [frozenset(each) for each in _chosen(list(classes.values()), size)]


def _chosen(classes: Sequence[Sequence[int]], size: int) -> Iterator[list[int]]:
    for kinds in itertools.combinations_with_replacement(range(len(classes)), size):
        numbers = {kind: kinds.count(kind) for kind in kinds}
        if all(len(classes[kind]) >= number for kind, number in numbers.items()):
            yield [v for kind, number in numbers.items() for v in classes[kind][:number]]
