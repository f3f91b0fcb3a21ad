"""Every placement that the scheduler may produce, if there are few enough.

Whichever pod comes next and whichever feasible node takes it: a placement is final if no node is
feasible for any pod that is left. Of placements that differ only by equivalent nodes, one is
evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.gate.problem import Problem
from analyzer.gate.state import SchedulerState
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.gate.state import PodCounts

#: Pods and nodes looked at, in all: a second or two.
_BUDGET: Final = 150_000
#: Pods that are placed one inside the other.
_MOST_PODS: Final = 120


@value
class Ended:
    """A placement that the scheduler may end with.

    Attributes:
        counts: how many pods of each group are on each node.
        left: how many of each group no node takes.
    """

    counts: PodCounts
    left: tuple[int, ...]

    def held(self, groups: Iterator[int] | Sequence[int]) -> list[int]:
        """Return how many pods of these groups each node has."""
        return [sum(column) for column in zip(*(self.counts[g] for g in groups), strict=True)]


def ended(state: SchedulerState) -> Ended:
    """Return the placement of a state."""
    return Ended(state.frozen(), tuple(state.left))


def every_end(
    problem: Problem, groups: Sequence[int], most: int | None = None
) -> list[Ended] | None:
    """Return the placements of these groups, equivalent ones once; None if too many.

    `most`: pods that are too many in any case, where these are more.
    """
    state = SchedulerState(problem, groups)
    if sum(state.left) > (_MOST_PODS if most is None else most):
        return None
    found = _Search(problem, groups, state)
    return found.ends if found.run() else None


class _Search:
    """Looks at one state after the other, each once."""

    def __init__(self, problem: Problem, groups: Sequence[int], state: SchedulerState) -> None:
        self._classes = problem.classes
        self._groups = tuple(groups)
        self._state = state
        self._seen: set[object] = set()
        self._work = 0
        self.ends: list[Ended] = []

    def run(self) -> bool:
        """Enumerate what the state can lead to; False if it takes too long."""
        key = self._key()
        if key in self._seen:
            return True
        self._seen.add(key)
        is_end = True
        for g in self._groups:
            self._work += len(self._classes)
            if self._work > _BUDGET:
                return False
            looked_at = set()
            for v in self._state.open(g):
                is_end = False
                kind = self._classes[v], self._column(v)
                if kind in looked_at:
                    continue
                looked_at.add(kind)
                self._state.put(g, v)
                goes_on = self.run()
                self._state.remove(g, v)
                if not goes_on:
                    return False
        if is_end:
            self.ends.append(ended(self._state))
        return True

    def _column(self, v: int) -> tuple[int, ...]:
        return tuple([self._state.counts[g][v] for g in self._groups])

    def _key(self) -> object:
        columns = zip(*(self._state.counts[g] for g in self._groups), strict=True)
        return tuple(sorted(zip(self._classes, columns, strict=True)))
