"""The worst placements over all replica counts that autoscalers may choose.

A larger number need not be better: of three pods in two zones two are in one, of two only one is.
So each number is looked at, as long as bounds do not say that it is no worse than what was found.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from analyzer.gate.bounds import is_free
from analyzer.gate.failing import Failing
from analyzer.gate.problem import Problem
from analyzer.gate.worst import Bounded, Placements, WorstPlacement, bound_to, bounds_of, placements
from analyzer.model.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Combinations of numbers, of several autoscalers, that are looked at.
_MOST_LOOKED_AT: Final = 2_000
#: Most pods times nodes for which placements are searched, in all: some seconds.
_MOST_WORK: Final = 40_000
#: Ends of all of these together that are evaluated one by one.
_MOST_ENDS: Final = 1_200
_WHOLE: Final = Fraction(1)


def scaled_placements(
    problem: Problem,
    ends: Sequence[int],
    failing: Failing,
    *,
    want_every: bool = False,
    work: int = _MOST_WORK,
) -> Placements:
    """Return the worst of `placements` over all replica counts of autoscalers.

    The number of pending pods is for the least counts, as an upper bound for all. Beyond `work`,
    pods times nodes, only bounds are returned.
    """
    found = placements(problem, ends, failing, want_every=want_every)
    ranges = _ranges(problem, ends)
    if math.prod(map(len, ranges)) == 1:
        return found
    search = _Search(problem, ends, failing, found, work, want_every=want_every)
    search.run(ranges)
    return search.found


def _ranges(problem: Problem, ends: Sequence[int]) -> list[range]:
    """Return the numbers of each scale that matter to the pods of `ends`; others keep the least."""
    fullest = problem.fullest
    groups = bound_to(fullest, ends)
    is_closed = all(is_free(fullest, g) for g in groups)
    return [
        range(s.least, s.most + 1 if not is_closed or s.groups.keys() & {*groups} else s.least + 1)
        for s in problem.scales
    ]


def _combined(ranges: Sequence[range]) -> Iterator[tuple[int, ...]]:
    """Yield the combinations with the smaller numbers first, as far as all are looked at."""
    most = max(map(len, ranges))
    while math.prod(min(len(each), most) for each in ranges) > _MOST_LOOKED_AT:
        most -= 1
    every = itertools.product(*(each[:most] for each in ranges))
    yield from sorted(every, key=lambda numbers: (sum(numbers), numbers))


class _Search:
    """Looks at one combination of numbers after the other.

    Attributes:
        found: the worst of all so far.
    """

    def __init__(
        self,
        problem: Problem,
        ends: Sequence[int],
        failing: Failing,
        found: Placements,
        work: int,
        *,
        want_every: bool,
    ) -> None:
        self._problem = problem
        self._ends = ends
        self._failing = failing
        self._want_every = want_every
        self._work = work
        self.found = found

    def run(self, ranges: Sequence[range]) -> None:
        """Evaluate all combinations, or many, assuming the worst of the rest."""
        first = tuple(each.start for each in ranges)
        looked_at = 1
        for numbers in _combined(ranges):
            if numbers != first:
                self._look(self._problem.scaled(numbers))
                looked_at += 1
        if looked_at < math.prod(map(len, ranges)):
            self._open(Bounded(dict.fromkeys(self._failing.kinds, _WHOLE), 0, None))

    def _look(self, problem: Problem) -> None:
        known = bounds_of(problem, self._ends, self._failing, self.found.fewest[1])
        if self._is_no_worse(known):
            self.found = replace(self.found, pending=_pending(self.found, known.left))
            return
        self._work -= len(problem.nodes) * sum(each.number for each in problem.groups)
        if self._work < 0:
            self._open(known)
        else:
            more = placements(problem, self._ends, self._failing, want_every=self._want_every)
            self.found = _worse(self.found, more)

    def _is_no_worse(self, known: Bounded) -> bool:
        worst = self.found.worst
        return (
            not self._want_every
            and all(bound <= worst[kind].part for kind, bound in known.parts.items())
            and known.surely >= self.found.fewest[1] - 1
            # If not a single pod can be placed, nothing is left to serve.
            and (known.left is not None or not self.found.fewest[1])
        )

    def _open(self, known: Bounded) -> None:
        """Take in that other numbers were not searched, of which this is known."""
        found = self.found
        self.found = replace(
            found,
            worst={
                kind: WorstPlacement(each.end, each.part, max(each.most, known.parts[kind]))
                for kind, each in found.worst.items()
            },
            surely=min(found.surely, known.surely),
            every=None,
            pending=_pending(found, known.left),
        )


def _pending(found: Placements, left: int | None) -> tuple[int, int | None]:
    """Return how many pods fit on no node, if at most `left` do with other numbers."""
    least, most = found.pending
    return least, None if most is None or left is None else max(most, left)


def _worse(one: Placements, other: Placements) -> Placements:
    """Return the worst of both."""
    worst = {}
    for kind, each in one.worst.items():
        more = other.worst[kind]
        end = each.end if each.part >= more.part else more.end
        worst[kind] = WorstPlacement(end, max(each.part, more.part), max(each.most, more.most))
    every = None
    if one.every is not None and other.every is not None:
        every = (*one.every, *other.every)
    return replace(
        one,
        groups=tuple(sorted({*one.groups, *other.groups})),
        worst=worst,
        # Of as many nodes the first, with fewer pods.
        fewest=min(one.fewest, other.fewest, key=lambda each: each[1]),
        surely=min(one.surely, other.surely),
        every=every if every is None or len(every) <= _MOST_ENDS else None,
        pending=_pending(one, other.pending[1]),
    )
