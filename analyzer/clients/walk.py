"""Means over all ends of a plan, as bounds.

Theory of operation
===================

The result is the mean of a quantity at the end: whether it failed, when it ended. A traversal back
from the ends bounds it: at a draw by the least and the greatest mean that the lot allows, at an
either by the least and the greatest of its branches. If all chances are known, both are equal.

The result at a node does not depend on the path there, apart from the remaining time: so results
are cached by the node and that time. Times are whole numbers of a unit that divides all waits of
the plan. The chances of all ends are found in one traversal: if all paths from a draw to an end
begin with one fate, its chance is that of the fate, as the lot bounds it, times that behind it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import cached_property, partial

from analyzer.clients.plan import (
    ZERO,
    EitherPlan,
    Finished,
    NewFlow,
    OperationResult,
    Plan,
    Time,
    Wait,
)
from analyzer.clients.responses import RESPONSES, Lot
from analyzer.model.value import value
from analyzer.semantics.depth import deep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

ONE: Final = Fraction(1)
#: The least and the greatest.
FractionRange: TypeAlias = tuple[Fraction, Fraction]
_SURE: Final = (ONE, ONE)
_NEVER: Final = (ZERO, ZERO)


@value
class _Ended:
    result: OperationResult


@value
class _Waits:
    least: int
    most: int
    then: int


@value
class _Draws:
    """A draw; the first node represents fates with probability 0."""

    lot: Lot
    then: tuple[int | None, ...]


@value
class _Forks:
    then: tuple[int, ...]


_Node: TypeAlias = _Ended | _Waits | _Draws | _Forks
#: How and after how long a plan ends, at least and at most.
_End: TypeAlias = tuple[OperationResult, int, int]
_Chances: TypeAlias = dict[_End, FractionRange]


class Walk:
    """A plan, numbered for traversals."""

    def __init__(self, plan: Plan) -> None:
        every = _sorted(plan)
        waits = [each.time for each in every if isinstance(each, Wait)]
        self._unit = math.lcm(*(t.denominator for w in waits for t in (w.least, w.most)))
        numbers = {id(each): at for at, each in enumerate(every)}
        self._nodes = [self._node(each, numbers) for each in every]
        self._known: dict[tuple[object, ...], FractionRange] = {}

    def _node(self, plan: Plan, numbers: dict[int, int]) -> _Node:
        match plan:
            case Finished(result):
                return _Ended(result)
            case Wait(time, then):
                return _Waits(self._whole(time.least), self._whole(time.most), numbers[id(then)])
            case NewFlow(lot, then):
                return _Draws(
                    lot, tuple(numbers[id(then[f])] if f in then else None for f in RESPONSES)
                )
            case EitherPlan(plans):
                return _Forks(tuple(numbers[id(each)] for each in plans))

    def _whole(self, seconds: Fraction) -> int:
        return int(seconds * self._unit)

    def fails(self) -> FractionRange:
        """Return the chance that the plan ends without an answer."""
        found: list[FractionRange] = []
        for node in self._nodes:
            if isinstance(node, _Ended):
                found.append(_NEVER if node.result is OperationResult.ANSWERED else _SURE)
            else:
                found.append(_over(node, found.__getitem__))
        return found[-1]

    def delay(self) -> FractionRange:
        """Return the mean number of seconds until the plan ends."""
        found: list[FractionRange] = []
        for node in self._nodes:
            if isinstance(node, _Ended):
                found.append(_NEVER)
            elif isinstance(node, _Waits):
                least, most = found[node.then]
                found.append((least + node.least, most + node.most))
            else:
                found.append(_over(node, found.__getitem__))
        least, most = found[-1]
        return least / self._unit, most / self._unit

    def ends(self) -> list[tuple[OperationResult, Time]]:
        """Return all possible ends, the earliest first."""
        order = {result: at for at, result in enumerate(OperationResult)}
        ends = sorted(self._chances, key=lambda end: (end[1], end[2], order[end[0]]))
        unit = self._unit
        return [(r, Time(Fraction(a, unit), Fraction(b, unit))) for r, a, b in ends]

    def chance(self, result: OperationResult, time: Time) -> FractionRange:
        """Return the chance of this end at this time."""
        end = result, self._whole(time.least), self._whole(time.most)
        return self._chances.get(end, _NEVER)

    @cached_property
    def _chances(self) -> _Chances:
        """The chance of each end."""
        waiting = Counter(then for node in self._nodes for then in _behind(node))
        found: dict[int, _Chances] = {}
        for at, node in enumerate(self._nodes):
            match node:
                case _Ended(result):
                    found[at] = {(result, 0, 0): _SURE}
                case _Waits(least, most, then):
                    of = found[then].items()
                    found[at] = {(r, a + least, b + most): each for (r, a, b), each in of}
                case _Draws() | _Forks():
                    found[at] = _chances_of_any(node, found)
            # Of a long plan each node has many ends: they are kept no longer than needed.
            for then in _behind(node):
                waiting[then] -= 1
                if not waiting[then]:
                    del found[then]
        return found[len(self._nodes) - 1]

    @deep
    def over_by(self, seconds: Fraction) -> FractionRange:
        """Return the share of ends that are certainly over by then, and of those that may be."""
        last, left = len(self._nodes) - 1, seconds * self._unit // 1
        return self._over_by(last, left, slow=True)[0], self._over_by(last, left, slow=False)[1]

    def _over_by(self, at: int, left: int, *, slow: bool) -> FractionRange:
        """Return that where each wait is as long as it may be (`slow`), or as short."""
        if left < 0:
            return _NEVER
        key = at, left, slow
        if key not in self._known:
            node = self._nodes[at]
            if isinstance(node, _Ended):
                self._known[key] = _SURE
            else:
                passes = 0
                if isinstance(node, _Waits):
                    passes = node.most if slow else node.least
                self._known[key] = _over(
                    node, lambda then: self._over_by(then, left - passes, slow=slow)
                )
        return self._known[key]


def _behind(node: _Node) -> Iterable[int]:
    """Return the nodes after a node."""
    match node:
        case _Ended():
            return ()
        case _Waits(_, _, then):
            return (then,)
        case _Draws(_, after):
            return {at for at in after if at is not None}
        case _Forks(after):
            return set(after)


def _chances_of_any(node: _Draws | _Forks, of: Mapping[int, _Chances]) -> _Chances:
    """Return the chance of each end, from those of the nodes after this one."""
    ways: dict[_End, list[int]] = {}
    for then in _behind(node):
        for end in of[then]:
            ways.setdefault(end, []).append(then)
    ranges = _ranges(node) if isinstance(node, _Draws) else {}
    found: _Chances = {}
    for end, through in ways.items():
        only = ranges.get(through[0]) if len(through) == 1 else None
        if only is not None:  # as `_over` has it, in a fraction of the time
            least, most = of[through[0]][end]
            found[end] = _product(only[0], least), _product(only[1], most)
        else:
            each = {then: of[then][end] for then in through}
            found[end] = _over(node, partial(_chance_of, each))
    return found


def _chance_of(known: Mapping[int, FractionRange], at: int) -> FractionRange:
    return known.get(at, _NEVER)


def _ranges(node: _Draws) -> dict[int, FractionRange]:
    """Return the chance of each node after a draw that stands for one fate."""
    lower = sum((least for least, _ in node.lot.bounds), ZERO)
    upper = sum((most for _, most in node.lot.bounds), ZERO)
    number = Counter(node.then)
    return {
        then: (max(least, 1 - (upper - most)), min(most, 1 - (lower - least)))
        for then, (least, most) in zip(node.then, node.lot.bounds, strict=True)
        if then is not None and number[then] == 1
    }


def _product(first: Fraction, second: Fraction) -> Fraction:
    """Return a product, which takes long even if it is trivial."""
    if not first or not second:
        return ZERO
    return second if first == 1 else first if second == 1 else first * second


def _sorted(plan: Plan) -> list[Plan]:
    """Return all nodes, each after those that follow it."""
    found: dict[int, Plan] = {}
    todo: list[tuple[Plan, bool]] = [(plan, False)]
    while todo:
        each, is_ready = todo.pop()
        if id(each) in found:
            continue
        if is_ready:
            found[id(each)] = each
            continue
        todo.append((each, True))
        match each:
            case Finished():
                pass
            case Wait(_, then):
                todo.append((then, False))
            case NewFlow(_, branches):
                todo += [(then, False) for then in branches.values()]
            case EitherPlan(plans):
                todo += [(then, False) for then in plans]
    return [*found.values()]


def _over(node: _Waits | _Draws | _Forks, of: Callable[[int], FractionRange]) -> FractionRange:
    """Return the bounds at a node, from those of the nodes after it."""
    match node:
        case _Waits(_, _, then):
            return of(then)
        case _Draws(lot, then):
            each = [_NEVER if at is None else of(at) for at in then]
            if lot.is_exact:
                shares = [share for share, _ in lot.bounds]
                least = sum((s * a for s, (a, _) in zip(shares, each, strict=True) if s), ZERO)
                if all(a == b for a, b in each):
                    return least, least
                most = sum((s * b for s, (_, b) in zip(shares, each, strict=True) if s), ZERO)
                return least, most
            return (
                lot.least([lower for lower, _ in each]),
                -lot.least([-upper for _, upper in each]),
            )
        case _Forks(then):
            found = [of(at) for at in then]
            return min(lower for lower, _ in found), max(upper for _, upper in found)
