"""The worst pairs of nodes, without evaluating every pair.

Theory of operation
===================

The cost of a pair mostly follows from its two nodes: the worst loss is the greater of theirs, sums
of losses add up, and so do ServicePorts in total loss. It is higher for two kinds of pairs only: if
a ServicePort is on both and loses more there than any does with either (its two numbers add up
too), and if one is on these two and nowhere else. So there are three streams of pairs, each with
the worst first by a bound that no later pair can exceed: pairs by the cost of their nodes, pairs
that put a ServicePort in total loss together, pairs that carry most of one row. Each stream is read
until it has nothing that could still be among the worst; every pair is covered, few are evaluated.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence

from analyzer.failure.costs import Singles, worst_of
from analyzer.failure.incidence import ONE, Incidence, RouteRow, rank
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    #: What pairs are ordered by: compared as a whole, the greatest is the worst.
    Rank = tuple[int, int, int]
    NodePair = tuple[int, int]

#: Most pairs that are evaluated per stream if many are equal.
_MOST: Final = 20_000
#: And those that are found not to be among the worst.
_MOST_WEIGHED: Final = 500_000


@value(kw_only=True)
class Pairs:
    """The worst pairs of groups.

    Attributes:
        worst: indexes of the groups of each, the worst first.
        number: of all pairs.
        silencing: how many of all put a ServicePort in total loss.
        is_complete: whether no pair that is left out can be worse than one that is here; False if
            more were equal than are evaluated.
    """

    worst: tuple[NodePair, ...]
    number: int
    silencing: int
    is_complete: bool


def worst_pairs(incidence: Incidence, costs: Singles, top: int, *, by_mean: bool = False) -> Pairs:
    """Return the worst `top` pairs: by the worst loss, ServicePorts in total loss and the mean.

    With `by_mean`, by the mean first.
    """
    search = _Search(incidence, costs, top, by_mean=by_mean)
    if by_mean:
        search.read(search.by_sum())
    else:
        search.read(search.by_nodes())
        search.read(search.by_silenced())
        search.read(search.by_rows())
    return Pairs(
        worst=tuple(pair for _, pair in search.best()),
        number=len(incidence.groups) * (len(incidence.groups) - 1) // 2,
        silencing=_silencing(incidence, costs),
        is_complete=search.is_complete,
    )


def _silencing(incidence: Incidence, costs: Singles) -> int:
    """Return how many pairs put a ServicePort in total loss."""
    size = len(incidence.groups)
    alone = {group for group, gone in enumerate(costs.silenced) if gone}
    others = size - len(alone)
    both = {each for each in incidence.total if each is not None and len(each) == 2}  # noqa: PLR2004  # a pair
    together = sum(alone.isdisjoint(each) for each in both)
    return size * (size - 1) // 2 - others * (others - 1) // 2 + together


class _Search:
    """Keeps the worst pairs found so far."""

    def __init__(self, incidence: Incidence, costs: Singles, top: int, *, by_mean: bool) -> None:
        self._incidence = incidence
        self._costs = costs
        self._top = top
        self._by_mean = by_mean
        self._found: dict[NodePair, Rank] = {}
        #: The keys of the worst, the least bad of them first.
        self._kept: list[Rank] = []
        self.is_complete = True
        self._weighed = 0
        self._worst = [rank(each) for each in costs.worst]
        self._gone = [len(each) for each in costs.silenced]
        self._sum = costs.upper
        self._together: dict[NodePair, int] = {}
        for total in incidence.total:
            if total is not None and len(total) == 2:  # noqa: PLR2004  # a pair
                one, other = sorted(total)
                self._together[one, other] = self._together.get((one, other), 0) + 1
        self._rows: dict[int, frozenset[int]] = {}
        #: By how much the sum of two costs may exceed what they cost together.
        self._less = costs.base - costs.excess

    def best(self) -> list[tuple[Rank, NodePair]]:
        """Return the worst pairs, the worst first; equal ones by index."""
        ordered = sorted(self._found.items(), key=lambda each: (*[-k for k in each[1]], each[0]))
        return [(key, pair) for pair, key in ordered[: self._top]]

    def read(self, stream: Iterable[tuple[Rank, NodePair]]) -> None:
        """Evaluate the pairs of a stream that could be among the worst.

        Each comes with a bound on its key, and the bounds decrease.
        """
        looked_at = 0
        for bound, pair in stream:
            if self._is_full and bound <= self._kept[0]:
                return
            if pair in self._found:
                continue
            if looked_at == _MOST:
                self.is_complete = False
                return
            looked_at += 1
            key = self._found[pair] = self.key(*pair)
            if len(self._kept) < self._top:
                heapq.heappush(self._kept, key)
            else:
                heapq.heappushpop(self._kept, key)

    def key(self, one: int, other: int) -> Rank:
        """Return what a pair is ordered by."""
        worst = max(self._worst[one], self._worst[other])
        both = self._rows_of(one) & self._rows_of(other)
        for row in self._incidence.of_group[one]:
            if id(row) in both:
                worst = max(worst, rank(row.most((one, other))))
        gone = self._gone[one] + self._gone[other] + self._together.get((one, other), 0)
        total = self._sum[one] + self._sum[other] - self._costs.base
        first, second = self._costs.odd[one], self._costs.odd[other]
        for service in first.keys() & second.keys():
            rows = self._incidence.services[service]
            most, *_ = worst_of(rows, (one, other))
            base, *_ = worst_of(rows, ())
            total += most - first[service] - second[service] + base
        return self._ordered(worst, gone, rank(total))

    def _rows_of(self, group: int) -> frozenset[int]:
        if group not in self._rows:
            self._rows[group] = frozenset(map(id, self._incidence.of_group[group]))
        return self._rows[group]

    def _ordered(self, worst: int, gone: int, total: int) -> Rank:
        return (total, worst, gone) if self._by_mean else (worst, gone, total)

    def _most_of_sum(self, one: int, other: int) -> int:
        return rank(self._sum[one] + self._sum[other] - self._less)

    # --- streams -----------------------------------------------------------

    def by_sum(self) -> Iterator[tuple[Rank, NodePair]]:
        """Yield pairs by the sum of their nodes' costs."""
        every = sorted(range(len(self._worst)), key=lambda each: -self._sum[each])
        top = rank(ONE) + len(self._incidence.services)
        for one, other in descending(every, every, self._sum.__getitem__):
            yield (self._most_of_sum(one, other), top, top), (one, other)

    def by_nodes(self) -> Iterator[tuple[Rank, NodePair]]:
        """Yield pairs by the worst loss of either node, then by the sum of both costs."""

        def number(group: int) -> int:
            # ServicePorts in total loss first: no sum of losses is as great as the factor.
            return self._gone[group] * factor + self._sum[group]

        factor = 4 * (sum(self._sum) + 1)
        ordered = sorted(range(len(self._worst)), key=lambda each: (-self._worst[each], each))
        begins = 0
        while begins < len(ordered):
            worst = self._worst[ordered[begins]]
            ends = begins
            while ends < len(ordered) and self._worst[ordered[ends]] == worst:
                ends += 1
            alike = sorted(ordered[begins:ends], key=number, reverse=True)
            lower = sorted(ordered[begins:], key=number, reverse=True)
            for one, other in descending(alike, lower, number):
                gone = self._gone[one] + self._gone[other]
                yield (worst, gone, self._most_of_sum(one, other)), (one, other)
            begins = ends

    def by_silenced(self) -> Iterator[tuple[Rank, NodePair]]:
        """Yield pairs that put a ServicePort in total loss which neither node does."""
        bounds = []
        for (one, other), more in self._together.items():
            gone = self._gone[one] + self._gone[other] + more
            key = rank(ONE), gone, self._most_of_sum(one, other)
            bounds.append((key, (one, other)))
        bounds.sort(key=lambda each: (*[-k for k in each[0]], each[1]))
        yield from bounds

    def by_rows(self) -> Iterator[tuple[Rank, NodePair]]:
        """Yield pairs that lose more of a row together than of any with either node.

        Only those that may be among the worst, compared with those kept so far. A pair may be
        yielded for several rows.
        """
        rows = [
            (most, -at, row)
            for at, row in enumerate(row for own in self._incidence.services for row in own)
            if len(row.upper) > 1 and self._is_wanted(most := _most_of_two(row))
        ]
        rows.sort(key=lambda each: each[:2], reverse=True)
        gone = sum(sorted(self._gone)[-2:]) + max(self._together.values(), default=0)
        highest = sorted(range(len(self._sum)), key=self._sum.__getitem__)[-2:]
        total = self._most_of_sum(*highest) if rows else 0
        for most, _, row in rows:
            if self._is_full and (most, gone, total) <= self._kept[0]:
                return
            for now, pair in self._pairs_of(row):
                if not self._is_beaten(now, pair):
                    # There is no bound on later pairs: where to stop is decided here.
                    yield (now, gone, total + 1), pair

    def _pairs_of(self, row: RouteRow) -> Iterator[tuple[int, NodePair]]:
        """Yield the pairs that lose most of a row, as long as they may be among the worst."""
        numbers = row.upper
        ordered = sorted(numbers, key=numbers.__getitem__, reverse=True)
        for at, one in enumerate(ordered):
            for behind in range(at + 1, len(ordered)):
                other = ordered[behind]
                now = _bound(row, numbers[one] + numbers[other])
                self._weighed += 1
                if self._weighed > _MOST_WEIGHED:
                    self.is_complete = False
                    return
                if not self._is_wanted(now):
                    if behind == at + 1:
                        return  # nor is any further on
                    break
                if now > self._worst[one] and now > self._worst[other]:
                    yield now, ((one, other) if one < other else (other, one))

    @property
    def _is_full(self) -> bool:
        return len(self._kept) == self._top

    def _is_beaten(self, worst: int, pair: NodePair) -> bool:
        """Return whether a pair with this worst loss cannot be among those to keep."""
        if not self._is_full:
            return False
        gone = sum(self._gone[each] for each in pair) + self._together.get(pair, 0)
        return (worst, gone, self._most_of_sum(*pair)) <= self._kept[0]

    def _is_wanted(self, worst: int) -> bool:
        """Return whether a pair with this worst loss may be among those to keep."""
        return not self._is_full or worst >= self._kept[0][0]


def _bound(row: RouteRow, number: int) -> int:
    """Return an upper bound of a pair's loss on a row of which it carries `number`."""
    return rank(min(ONE, row.open + number))


def _most_of_two(row: RouteRow) -> int:
    return _bound(row, sum(sorted(row.upper.values())[-2:]))


def descending(
    first: Sequence[int], second: Sequence[int], number: Callable[[int], int]
) -> Iterator[NodePair]:
    """Yield pairs of one of each sequence by the sum of their numbers, the greatest first.

    Both are in that order; if they are the same, no pair is yielded twice. A pair has its lesser
    member first, and no member is paired with itself.
    """
    within = first is second
    begin = int(within)
    if not first or begin >= len(second):
        return
    heap = [(-number(first[0]) - number(second[begin]), 0, begin)]
    while heap:
        _, row, column = heapq.heappop(heap)
        begins = row + 1 if within else 0
        if column == begins and row + 1 < len(first) and begins + begin < len(second):
            total = number(first[row + 1]) + number(second[begins + begin])
            heapq.heappush(heap, (-total, row + 1, begins + begin))
        if column + 1 < len(second):
            total = number(first[row]) + number(second[column + 1])
            heapq.heappush(heap, (-total, row, column + 1))
        one, other = first[row], second[column]
        if one != other:
            yield (one, other) if one < other else (other, one)
