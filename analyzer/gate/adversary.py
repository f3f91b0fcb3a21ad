"""An adversarial scheduler: among feasible nodes it picks those that will fail together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from analyzer.gate.every import Ended, ended
from analyzer.gate.problem import Problem
from analyzer.gate.state import SchedulerState


def adverse_ends(
    problem: Problem, groups: Sequence[int], ends: Collection[int], nodes: Collection[int]
) -> Iterator[Ended]:
    """Yield placements of `groups` that favour these nodes for pods of some `ends`.

    Each is one that the scheduler may end in.
    """
    first = [g for g in groups if g in ends]
    others = [g for g in groups if g not in ends]
    yield _filled(problem, groups, [*first, *others], _towards(nodes))
    if others:
        yield _filled(problem, groups, [*others, *first], _towards(nodes))
    yield _filled(problem, groups, [*first, *others], _once_towards(nodes, frozenset(ends)))


def crowded_end(problem: Problem, ends: Collection[int], nodes: Collection[int]) -> Ended:
    """Return a placement of all other pods first, on these nodes only as a last resort."""
    groups = range(len(problem.groups))
    others = [g for g in groups if g not in ends]
    away = frozenset(range(len(problem.nodes))).difference(nodes)

    def wish(state: SchedulerState, g: int, v: int) -> tuple[int, ...]:
        return _towards(nodes if g in ends else away)(state, g, v)

    return _filled(problem, groups, [*others, *ends], wish)


#: How much a node is wanted for a pod: the least is taken.
_Wish = Callable[[SchedulerState, int, int], tuple[int, ...]]


def _towards(nodes: Collection[int]) -> _Wish:
    """Return the wish for these nodes, then for those with most pods of the group."""

    def wish(state: SchedulerState, g: int, v: int) -> tuple[int, ...]:
        return v not in nodes, -state.counts[g][v], v

    return wish


def _once_towards(nodes: Collection[int], ends: frozenset[int]) -> _Wish:
    """Return the wish for one pod there, and for the others in other zones and on other nodes."""

    def wish(state: SchedulerState, _: int, v: int) -> tuple[int, ...]:
        has_one = any(state.counts[h][u] for h in ends for u in nodes)
        if not has_one:
            return v not in nodes, 0, v
        zones = {state.problem.classes[u] for u in nodes}
        return v in nodes, state.problem.classes[v] in zones, v

    return wish


def _filled(problem: Problem, groups: Sequence[int], order: Sequence[int], wish: _Wish) -> Ended:
    """Return where pods end, the first group in `order` that has an open node always first."""
    state = SchedulerState(problem, groups)
    waiting = [g for g in order if state.left[g]]
    while waiting:
        for g in waiting:
            found = state.open(g)
            if found:
                state.put(g, min(found, key=lambda v, g=g: wish(state, g, v)))  # type: ignore[misc]  # mypy knows no default of a lambda
                break
        else:
            break
        waiting = [g for g in order if state.left[g]]
    return ended(state)
