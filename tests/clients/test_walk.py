"""Chances of all ends of a plan, computed at once, are those of each end by itself."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from analyzer.clients.plan import (
    EitherPlan,
    Finished,
    NewFlow,
    OperationResult,
    Plan,
    Time,
    Wait,
)
from analyzer.clients.responses import RESPONSES, Lot, lot
from analyzer.clients.walk import FractionRange, Walk
from tests.support.effort import examples

NONE = Fraction(0), Fraction(0)
SURE = Fraction(1), Fraction(1)


@st.composite
def lots(draw: st.DrawFn) -> Lot:
    """Lots of pieces of which it is known, or not, what becomes of them."""
    weights = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    whole = sum(weights)
    some = st.sets(st.sampled_from(RESPONSES), min_size=1, max_size=draw(st.sampled_from([1, 3])))
    shares = [Fraction(each, whole) for each in weights]
    return lot([(each, each, frozenset(draw(some))) for each in shares])


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Plans whose nodes are shared."""
    every: list[Plan] = [Finished(OperationResult.ANSWERED), Finished(OperationResult.TIMED_OUT)]
    for _ in range(draw(st.integers(1, 8))):
        before = st.sampled_from(every)
        match draw(st.sampled_from(["draw", "draw", "wait", "either"])):
            case "wait":
                least, more = draw(st.tuples(st.integers(0, 2), st.integers(0, 1)))
                time = Time(Fraction(least, 2), Fraction(least + more, 2))
                every.append(Wait(time, draw(before)))
            case "either":
                every.append(EitherPlan(tuple(draw(st.lists(before, min_size=1, max_size=3)))))
            case _:
                drawn = draw(lots())
                every.append(NewFlow(drawn, {fate: draw(before) for fate in drawn.possible()}))
    return every[-1]


def chance(plan: Plan, result: OperationResult, time: Time) -> FractionRange:
    """Return the chance of one end, path by path."""
    if time.least < 0 or time.most < 0:
        return NONE
    match plan:
        case Finished(end):
            return SURE if end is result and time == Time(Fraction(0), Fraction(0)) else NONE
        case Wait(waits, then):
            left = time.least - waits.least, time.most - waits.most
            if min(left) < 0 or left[0] > left[1]:
                return NONE
            return chance(then, result, Time(*left))
        case NewFlow(drawn, then):
            of = [chance(then[each], result, time) if each in then else NONE for each in RESPONSES]
            return drawn.least([low for low, _ in of]), -drawn.least([-high for _, high in of])
        case EitherPlan(among):
            found = [chance(each, result, time) for each in among]
            return min(low for low, _ in found), max(high for _, high in found)


@examples(60, 3_000)
@given(plans())
def test_the_chance_of_each_end_is_that_of_the_end_by_itself(plan: Plan) -> None:
    walk = Walk(plan)
    every = walk.ends()
    assert len(set(every)) == len(every)
    for result, time in every:
        assert walk.chance(result, time) == chance(plan, result, time)
    assert walk.chance(OperationResult.CLOSED, Time(Fraction(0), Fraction(0))) == NONE
