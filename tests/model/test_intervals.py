"""Intervals of addresses are sets: each operation is that of Python's sets."""

from __future__ import annotations

from ipaddress import ip_network
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.model import intervals as intervals_of_many
from analyzer.model.intervals import (
    Intervals,
    Membership,
    around,
    common_of,
    holds,
    joined,
    meet,
    networks_of,
    one_each,
    span,
    without,
)
from tests.support.effort import examples
from tests.support.strategies.intervals import INTERVALS, LAST, is_in_order, numbers


@given(INTERVALS)
def test_intervals_that_overlap_or_touch_are_joined(given: list[tuple[int, int]]) -> None:
    found = joined(given)
    assert numbers(found) == numbers(tuple(given))
    assert is_in_order(found)


@given(INTERVALS, INTERVALS)
def test_intervals_meet_if_an_address_is_in_both(
    some: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    one, other = joined(some), joined(others)
    assert meet(one, other) is bool(numbers(one) & numbers(other))


@given(INTERVALS, st.integers(1, 4))
def test_few_intervals_hold_all_of_many_and_close_the_smallest_gaps(
    given: list[tuple[int, int]], most: int
) -> None:
    exact, found = joined(given), around(given, most)
    assert numbers(exact) <= numbers(found)
    assert len(found) == min(len(exact), most)
    assert is_in_order(found)
    assert all(numbers((each,)) & numbers(exact) for each in found)
    gaps = sorted(b[0] - a[1] for a, b in pairwise(exact))
    assert sorted(b[0] - a[1] for a, b in pairwise(found)) == gaps[max(len(gaps) - most + 1, 0) :]


@examples(100, 3_000)
@given(INTERVALS, INTERVALS)
def test_few_intervals_are_taken_out_of_many_as_out_of_a_set(
    mine: list[tuple[int, int]], theirs: list[tuple[int, int]]
) -> None:
    one, other = joined(mine), joined(theirs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intervals_of_many, "_MANY", 0)
        found = without(one, other), common_of(one, other)
    assert found == (without(one, other), common_of(one, other))
    assert numbers(found[0]) == numbers(one) - numbers(other)
    assert numbers(found[1]) == numbers(one) & numbers(other)


@examples(60, 1_000)
@given(st.lists(st.integers(0, LAST)))
def test_numbers_are_the_intervals_that_they_are_one_by_one(given: list[int]) -> None:
    assert one_each(given) == joined((number, number) for number in given)


@pytest.mark.parametrize("network", ["10.0.0.0/24", "10.0.0.7/32", "0.0.0.0/0", "2001:db8::/64"])
def test_networks_are_their_first_and_last_address(network: str) -> None:
    made = ip_network(network)
    assert list(networks_of(made.version, [span(made)])) == [made]


@given(st.lists(INTERVALS, max_size=4))
def test_in_which_sets_a_number_lies_is_told_as_each_set_tells_it(
    given_: list[list[tuple[int, int]]],
) -> None:
    sets = [joined(each) for each in given_]
    membership = Membership(sets)
    for number in range(-1, LAST + 3):
        wanted = {at for at, each in enumerate(sets) if holds(each, number)}
        assert membership.of(number) == wanted


#: Many small intervals.
MANY = st.sets(st.integers(0, 300), max_size=120).map(lambda of: joined((n, n) for n in of))


@examples(100, 3_000)
@given(MANY, st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), max_size=4).map(joined))
def test_what_many_intervals_and_few_have_in_common_is_what_sets_have(
    many: Intervals, few: Intervals
) -> None:
    for found in (common_of(many, few), common_of(few, many)):
        assert numbers(found) == numbers(many) & numbers(few)
        assert is_in_order(found)
