"""Bounds on times hold for whatever happened between looks, and both are attained."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from analyzer.cluster.course import Length, Stood, coinciding, lost_over, moments, stood, time_of
from analyzer.model.probability import Bounds, Dyadic

TIMES = st.lists(st.integers(0, 4), min_size=1, max_size=3, unique=True).map(sorted)
#: Parts of a second at which a change may be, in a naive play.
PARTS = (Fraction(1, 1000), Fraction(1, 2), Fraction(999, 1000))


def _state(times: list[int], changes: tuple[Fraction, ...], now: Fraction) -> int:
    """Return the state at a time, where each look's state came at a part of the gap before it."""
    found = 0
    for at in range(1, len(times)):
        gap = times[at] - times[at - 1]
        if now >= times[at - 1] + changes[at - 1] * gap:
            found = at
    return found


@given(TIMES, TIMES, st.data())
def test_whatever_happened_is_within_the_bounds(
    rules: list[int], objects: list[int], data: st.DataObject
) -> None:
    wrong = {
        pair: data.draw(st.booleans()) for pair in product(range(len(rules)), range(len(objects)))
    }
    found = moments([Fraction(x) for x in rules], [Fraction(x) for x in objects])
    bounds = time_of(found, lambda rule, of: wrong[rule, of])
    least, most = None, None
    for of_rules in product(PARTS, repeat=len(rules) - 1):
        for of_objects in product(PARTS, repeat=len(objects) - 1):
            took = Fraction(0)
            steps = 8
            span = rules[-1] - rules[0]
            for step in range(span * steps):
                now = Fraction(rules[0]) + Fraction(2 * step + 1, 2 * steps)
                pair = _state(rules, of_rules, now), _state(objects, of_objects, now)
                took += Fraction(wrong[pair], steps)
            least = took if least is None else min(least, took)
            most = took if most is None else max(most, took)
    assert least is not None
    assert most is not None
    assert bounds.lower <= least
    assert most <= bounds.upper
    # Each moment's bounds are attained at its edges; those of all together if only one differs.
    if sum(len(each.rules) + len(each.objects) > 2 for each in found) <= 1:
        slack = Fraction(1, 2)
        assert bounds.upper - most <= slack
        assert least - bounds.lower <= slack


@given(TIMES, st.data())
def test_what_is_lost_is_the_sum_over_times(rules: list[int], data: st.DataObject) -> None:
    shares = [Dyadic.of(data.draw(st.integers(0, 4)), 2) for _ in rules]
    found = moments([Fraction(x) for x in rules], [])
    lost = lost_over(found, lambda _moment, rule, _of: Bounds(shares[rule], shares[rule]))
    lower = upper = Fraction(0)
    for at in range(1, len(rules)):
        both = sorted(each.as_fraction() for each in shares[at - 1 : at + 1])
        lower += (rules[at] - rules[at - 1]) * both[0]
        upper += (rules[at] - rules[at - 1]) * both[1]
    assert lost.total == Length(lower, upper)
    assert sum((s.end - s.start for s in lost.stretches), Fraction(0)) == rules[-1] - rules[0]
    for one, other in zip(lost.stretches, lost.stretches[1:], strict=False):
        assert one.end == other.start
        assert one.loss != other.loss


def test_how_long_a_state_stood() -> None:
    times = [Fraction(each) for each in (0, 10, 20, 30)]
    found = stood(times, "abbc", 3)
    assert found == Stood(lower=Fraction(10), upper=Fraction(30))
    found = stood(times, "aabb", 2)
    assert found == Stood(lower=Fraction(10), upper=None)


def test_states_coincide_if_no_observation_is_between_them() -> None:
    rules, objects = [Fraction(0), Fraction(2), Fraction(5)], [Fraction(-1), Fraction(1)]
    # The second rules may be older than the second objects; the third are not.
    assert coinciding(rules, objects) == {(0, 0), (0, 1), (1, 0), (1, 1), (2, 1)}
    # One dump, at an instant.
    assert coinciding([Fraction(0)], []) == {(0, 0)}
    assert coinciding([Fraction(3)], objects) == {(0, 1)}


def test_times_within_a_gap_part_it() -> None:
    found = moments([Fraction(0), Fraction(10)], [Fraction(4)], [Fraction(6)])
    assert [int(each.end) for each in found] == [4, 6, 10]
    assert {each.rules for each in found} == {(0, 1)}
    assert {each.objects for each in found} == {(0,)}
    assert moments([], []) == ()
