"""Means over all ends of a plan, as bounds.

Theory of operation
===================

The result is the mean of a quantity at the end: whether it failed, when it ended. A traversal back
from the ends bounds it: at a draw by the least and the greatest mean that the lot allows, at an
either by the least and the greatest of its branches. If all chances are known, both are equal.

The result at a node does not depend on the path there, apart from the remaining time: so results
are cached by the node and that time. Times are whole numbers of a unit that divides all waits of
the plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

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
        found: list[set[tuple[OperationResult, int, int]]] = []
        for node in self._nodes:
            match node:
                case _Ended(result):
                    found.append({(result, 0, 0)})
                case _Waits(least, most, then):
                    found.append({(r, a + least, b + most) for r, a, b in found[then]})
                case _Draws(_, then):
                    found.append({end for at in then if at is not None for end in found[at]})
                case _Forks(then):
                    found.append({end for at in then for end in found[at]})
        order = {result: at for at, result in enumerate(OperationResult)}
        ends = sorted(found[-1], key=lambda end: (end[1], end[2], order[end[0]]))
        unit = self._unit
        return [(r, Time(Fraction(a, unit), Fraction(b, unit))) for r, a, b in ends]

    @deep
    def chance(self, result: OperationResult, time: Time) -> FractionRange:
        """Return the chance of this end at this time."""
        last = len(self._nodes) - 1
        return self._chance(last, result, self._whole(time.least), self._whole(time.most))

    def _chance(self, at: int, result: OperationResult, least: int, most: int) -> FractionRange:
        if least < 0 or most < 0:
            return _NEVER
        key = at, result, least, most
        if key not in self._known:
            node = self._nodes[at]
            if isinstance(node, _Ended):
                is_it = node.result is result and not least and not most
                self._known[key] = _SURE if is_it else _NEVER
            else:
                a, b = (node.least, node.most) if isinstance(node, _Waits) else (0, 0)
                self._known[key] = _over(
                    node, lambda then: self._chance(then, result, least - a, most - b)
                )
        return self._known[key]

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
