"""The worst allowed placements of a Service's pods, for each kind of failure.

A flow is lost on a dead endpoint, each living one is drawn as often as another: the more of the
pods are on the nodes that fail, the more is lost. So of all placements those are sought that have
the largest part of the pods on nodes that fail together; what they lose in fact is not said here.
Where rules of a Service prefer endpoints by place that need not be so, and all ends are candidates.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from analyzer.failure.whatif import FailureKind
from analyzer.gate.adversary import adverse_ends, crowded_end
from analyzer.gate.bounds import is_free, least_placed, most_on
from analyzer.gate.every import Ended, every_end
from analyzer.gate.failing import Failing, sets_of
from analyzer.gate.problem import Problem
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Nodes of which more than so many are tried as a set with all pods on it.
_MOST_SURVIVED: Final = 4
#: Pods of all groups together of which all placements are tried, where room is scarce.
_MOST_CROWDED: Final = 12
#: Ends that are evaluated one by one.
MOST_ENDS: Final = 400


@value
class WorstPlacement:
    """A worst placement for one kind of failure.

    Attributes:
        end: where the pods are.
        part: of the pods that are placed, the part on nodes that fail.
        most: no placement has a larger part; the same as `part` where it is proven to be the worst.
    """

    end: Ended
    part: Fraction
    most: Fraction

    @property
    def is_proven(self) -> bool:
        """Whether no placement is worse."""
        return self.part == self.most


@value(kw_only=True)
class Placements:
    """What is known of the placements of some groups.

    Attributes:
        groups: those that were placed: the requested ones, and those that affect their placement.
        worst: by kind of failure.
        fewest: a placement on the fewest nodes, and how many these are.
        surely: this many nodes never have all pods, whatever the placement.
        every: all final placements, if they are few; None if there are more.
        pending: at least and at most, how many of the pods fit on no node; the latter is None if
            it is not known.
    """

    groups: tuple[int, ...]
    worst: Mapping[FailureKind, WorstPlacement]
    fewest: tuple[Ended, int]
    surely: int
    every: tuple[Ended, ...] | None
    pending: tuple[int, int | None]

    @property
    def is_fewest_proven(self) -> bool:
        """Whether no placement is on fewer nodes."""
        return self.surely >= self.fewest[1] - 1


def placements(
    problem: Problem, ends: Sequence[int], failing: Failing, *, want_every: bool = False
) -> Placements:
    """Return the worst placements of the pods of `ends`, the groups of one Service.

    `want_every`: all placements are wanted, be the worst known without them or not.
    """
    groups = bound_to(problem, ends)
    is_closed = all(is_free(problem, g) for g in groups)
    found = _adverse(problem, groups, ends, failing)
    if not is_closed:
        found += _crowded(problem, ends, failing)
    known = _Known(problem, ends, failing, found)
    evaluated = known.evaluated(groups)
    least, most = evaluated.pending
    is_known = _is_proven(evaluated) and least == known.least_left and most is not None
    if is_known and not want_every:
        return evaluated
    every = groups if is_closed else tuple(range(len(problem.groups)))
    all_ends = every_end(problem, every, None if is_closed else _MOST_CROWDED)
    if all_ends is None:
        return evaluated
    return _Known(problem, ends, failing, all_ends).judged_of_all(every)


@value
class Bounded:
    """What is known of all placements without searching for any.

    Attributes:
        parts: by kind of failure, the highest share of the pods on failing nodes.
        surely: this many nodes never have all pods.
        left: how many pods fit on no node at most; None if it is not known.
    """

    parts: Mapping[FailureKind, Fraction]
    surely: int
    left: int | None


def bounds_of(problem: Problem, ends: Sequence[int], failing: Failing, fewest: int) -> Bounded:
    """Return bounds over all placements of the pods of `ends`; `surely` is below `fewest`."""
    known = _Known(problem, ends, failing, ())
    least = sum(least_placed(problem, g) for g in ends)
    parts = {kind: known.bound(kind, least) for kind in failing.kinds}
    return Bounded(parts, known.surely(least, fewest), known.left(least))


def _is_proven(found: Placements) -> bool:
    return found.is_fewest_proven and all(each.is_proven for each in found.worst.values())


def bound_to(problem: Problem, ends: Iterable[int]) -> tuple[int, ...]:
    """Return these groups and all that affect where they may be, other than by requests."""
    found = set(ends)
    waiting = [*found]
    while waiting:
        g = waiting.pop()
        related = set(problem.groups[g].related)
        related |= {h for h, each in enumerate(problem.groups) if g in each.related}
        waiting += related - found
        found |= related
    return tuple(sorted(found))


def _adverse(
    problem: Problem, groups: Sequence[int], ends: Sequence[int], failing: Failing
) -> list[Ended]:
    found: dict[Ended, None] = {}
    for size in range(1, _MOST_SURVIVED + 1):
        sets = sets_of(problem, size) or [] if size <= len(problem.nodes) else []
        for each in sets[: MOST_ENDS // size]:
            for end in adverse_ends(problem, groups, ends, each):
                found.setdefault(end)
        if any(sum(each.held(ends)) and _nodes(each, ends) <= size for each in found):
            break
    for kind in failing.kinds:
        if kind is not FailureKind.NODE:
            for each in [*(failing.sets(kind, problem) or ())][:MOST_ENDS]:
                for end in adverse_ends(problem, groups, ends, each):
                    found.setdefault(end)
    return [*found]


def _crowded(problem: Problem, ends: Sequence[int], failing: Failing) -> list[Ended]:
    """Return placements in which pods of all others came first, and kept some nodes free."""
    sets = [each for kind in failing.kinds for each in failing.sets(kind, problem) or ()]
    return [crowded_end(problem, ends, each) for each in dict.fromkeys(sets[:MOST_ENDS])]


def _nodes(end: Ended, ends: Sequence[int]) -> int:
    """Return on how many nodes pods of these groups are."""
    return sum(map(bool, end.held(ends)))


class _Known:
    """Picks the worst of placements, and says whether no other is worse."""

    def __init__(
        self, problem: Problem, ends: Sequence[int], failing: Failing, found: Sequence[Ended]
    ) -> None:
        self._problem = problem
        self._ends = ends
        self._failing = failing
        self._found = found
        self._number = sum(problem.groups[g].asked for g in ends)

    def evaluated(self, groups: tuple[int, ...]) -> Placements:
        """Return what is known if only some placements were evaluated."""
        least = sum(least_placed(self._problem, g) for g in self._ends)
        worst = {}
        for kind in self._failing.kinds:
            end, part = self._worst(kind)
            worst[kind] = WorstPlacement(end, part, max(part, self.bound(kind, least)))
        fewest = min(self._found, key=self._rank)
        number = _nodes(fewest, self._ends)
        surely = self.surely(least, number)
        every = range(len(self._problem.nodes))
        return Placements(
            groups=groups,
            worst=worst,
            fewest=(fewest, number),
            surely=surely,
            every=None,
            pending=(max(0, self._number - self._most_on(every)), self.left(least)),
        )

    def judged_of_all(self, groups: tuple[int, ...]) -> Placements:
        """Return the same if these are all placements."""
        worst = {}
        for kind in self._failing.kinds:
            end, part = self._worst(kind)
            worst[kind] = WorstPlacement(end, part, part)
        fewest = min(self._found, key=self._rank)
        number = _nodes(fewest, self._ends)
        left = [self._left(each) for each in self._found]
        return Placements(
            groups=groups,
            worst=worst,
            fewest=(fewest, number),
            surely=max(0, number - 1),
            every=tuple(self._found) if len(self._found) <= MOST_ENDS else None,
            pending=(min(left), max(left)),
        )

    @property
    def least_left(self) -> int:
        """The fewest unschedulable pods at the placements that were evaluated."""
        return min(map(self._left, self._found))

    def _left(self, end: Ended) -> int:
        return self._number - sum(end.held(self._ends))

    def _rank(self, end: Ended) -> tuple[int, int]:
        # Without any pod there is nothing that could survive: that is the worst.
        return _nodes(end, self._ends), -self._left(end)

    def _worst(self, kind: FailureKind) -> tuple[Ended, Fraction]:
        def part(end: Ended) -> Fraction:
            held = end.held(self._ends)
            placed = sum(held)
            # If no pod is placed, nothing is left to serve.
            return Fraction(self._failing.most(kind, held), placed) if placed else Fraction(1)

        end = max(self._found, key=part)
        return end, part(end)

    def bound(self, kind: FailureKind, least: int) -> Fraction:
        """Return an upper bound of the share of the pods, if there are at least `least`."""
        sets = self._failing.sets(kind, self._problem)
        if sets is None:
            return Fraction(1)
        most = max((self._most_on(each) for each in sets), default=0)
        if not most and least:
            return Fraction(0)
        return min(Fraction(1), Fraction(most, least)) if least else Fraction(1)

    def left(self, least: int) -> int | None:
        """Return the most pods that are unschedulable, if at least `least` are placed."""
        return self._number - least if least or not self._number else None

    def surely(self, least: int, most: int) -> int:
        """Return how many nodes, fewer than `most`, never have all of at least `least` pods."""
        # Whatever so many nodes never hold, fewer do not: the most is mostly it.
        if most > 1 and self._holds_none(most - 1, least):
            return most - 1
        surely = 0
        while surely < most - 1 and self._holds_none(surely + 1, least):
            surely += 1
        return surely

    def _most_on(self, nodes: Collection[int]) -> int:
        return sum(most_on(self._problem, g, nodes) for g in self._ends)

    def _holds_none(self, size: int, least: int) -> bool:
        """Return whether `size` nodes never have all pods that are placed."""
        sets = sets_of(self._problem, size)
        return sets is not None and all(self._most_on(each) < least for each in sets)


def candidates(found: Placements) -> Iterator[Ended]:
    """Yield the placements that may be the worst, each once."""
    told = [each.end for each in found.worst.values()]
    yield from dict.fromkeys([*told, found.fewest[0]])
