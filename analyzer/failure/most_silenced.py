"""Which sets of groups, of a given size, put most ServicePorts in total loss.

For one and two groups this is counted. For more it is a hard problem (a ServicePort on three nodes
counts only if all three are among them), so it is searched for a limited number of steps; no set
puts more than `at_most` in total loss, including those that were not examined.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence

from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Up to this many groups need no search.
_COUNTED: Final = 2
#: Sets that are examined in all, over all steps of the search.
_MOST: Final = 200_000
#: A multiple of 1 to 16, so that parts of small sets are whole numbers.
_DIVIDES: Final = 16
_PARTS: Final = 720_720


@value(kw_only=True)
class MostSilenced:
    """Groups that put most ServicePorts in total loss, of those that were found.

    Attributes:
        groups: their indexes; fewer than asked for if more would not add any.
        silenced: how many ServicePorts these put in total loss.
        at_most: no set of the size asked for puts more in total loss.
    """

    groups: tuple[int, ...]
    silenced: int
    at_most: int


def most_silenced(
    totals: Sequence[frozenset[int] | None],
    size: int,
    advance: Callable[[int], None] | None = None,
    *,
    most: int = _MOST,
) -> MostSilenced:
    """Return the groups, at most `size`, that contain most of these sets.

    `totals` are the groups of each ServicePort whose failure puts it in total loss.
    """
    counts: dict[frozenset[int], int] = {}
    for each in totals:
        if each is not None and len(each) <= size:
            counts[each] = counts.get(each, 0) + 1
    if size <= _COUNTED:
        return _counted(counts, size)
    return _Search(counts, size, advance, most).found()


def _counted(counts: Mapping[frozenset[int], int], size: int) -> MostSilenced:
    """Return the best one or two groups."""
    alone = {group: n for each, n in counts.items() if len(each) == 1 for group in each}
    first = frozenset(heapq.nlargest(size, sorted(alone), key=alone.__getitem__))
    found: tuple[frozenset[int], int] = first, sum(alone[each] for each in first)
    for each, together in sorted(counts.items(), key=lambda one: sorted(one[0])):
        silenced = together + sum(alone.get(group, 0) for group in each)
        if len(each) > 1 and silenced > found[1]:
            found = each, silenced
    groups, silenced = found
    return MostSilenced(groups=tuple(sorted(groups)), silenced=silenced, at_most=silenced)


class _Search:
    """Branch and bound: a set is taken with all its groups, or left out permanently."""

    def __init__(
        self,
        counts: Mapping[frozenset[int], int],
        size: int,
        advance: Callable[[int], None] | None,
        most: int,
    ) -> None:
        self._counts = dict(sorted(counts.items(), key=lambda each: sorted(each[0])))
        self._size = size
        self._advance = advance
        self._left = most
        self._best: tuple[int, frozenset[int]] = (0, frozenset())

    def found(self) -> MostSilenced:
        """Return the best that was found."""
        # By bound, the greatest first; the number keeps sets from being compared.
        heap = [(-self._bound(frozenset(), self._counts), 0, frozenset[int](), self._counts)]
        made = 0
        while heap and -heap[0][0] > self._best[0]:
            if self._left <= 0:
                break
            _, _, taken, open_sets = heapq.heappop(heap)
            self._left -= len(open_sets) + 1
            if self._advance is not None:
                self._advance(1)
            self._greedy(taken, open_sets)
            for branch, rest in self._branches(taken, open_sets):
                bound = self._bound(branch, rest)
                if bound > self._best[0]:
                    made += 1
                    heapq.heappush(heap, (-bound, made, branch, rest))
        silenced, groups = self._best
        at_most = max(silenced, -heap[0][0]) if heap else silenced
        return MostSilenced(groups=tuple(sorted(groups)), silenced=silenced, at_most=at_most)

    def _branches(
        self, taken: frozenset[int], sets: Mapping[frozenset[int], int]
    ) -> list[tuple[frozenset[int], dict[frozenset[int], int]]]:
        """Return the branches with and without the most promising set."""
        wanted = [each for each in sets if not each <= taken]
        if not wanted:
            return []
        chosen = max(wanted, key=lambda each: (sets[each] / len(each - taken), sorted(each)))
        with_it = taken | chosen
        kept = {each: n for each, n in sets.items() if len(each | with_it) <= self._size}
        without = {each: n for each, n in sets.items() if each != chosen}
        return [(with_it, kept), (taken, without)]

    def _bound(self, taken: frozenset[int], sets: Mapping[frozenset[int], int]) -> int:
        """Return an upper bound for this branch.

        Each set gives every group that it lacks an equal part of its ServicePorts, so that a set
        that is completed has contributed all of them.
        """
        # In parts of as many as every size divides, so that nothing is rounded.
        sure, parts = 0, dict[int, int]()
        for each, number in sets.items():
            lacking = each - taken
            if not lacking:
                sure += number
                continue
            part = (
                number * (_PARTS // len(lacking)) if len(lacking) <= _DIVIDES else number * _PARTS
            )
            for group in lacking:
                parts[group] = parts.get(group, 0) + part
        room = self._size - len(taken)
        return min(sum(sets.values()), sure + sum(heapq.nlargest(room, parts.values())) // _PARTS)

    def _greedy(self, taken: frozenset[int], sets: Mapping[frozenset[int], int]) -> None:
        """Add the most profitable groups to those taken, and keep the result if it is the best."""
        open_sets = dict(sets)
        while True:
            silenced = sum(n for each, n in self._counts.items() if each <= taken)
            if silenced > self._best[0]:
                self._best = silenced, taken
            room = self._size - len(taken)
            open_sets = {
                each: n
                for each, n in open_sets.items()
                if not each <= taken and len(each - taken) <= room
            }
            if not open_sets:
                return
            self._left -= len(open_sets)
            chosen: frozenset[int] = max(
                open_sets, key=lambda each: (open_sets[each] / len(each - taken), sorted(each))
            )
            taken |= chosen
