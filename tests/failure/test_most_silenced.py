"""The nodes that put most Services in total loss, and how many cannot be exceeded."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.failure.most_silenced import most_silenced
from tests.support.effort import examples

TOTALS = st.lists(st.one_of(st.none(), st.frozensets(st.integers(0, 6), min_size=1)), max_size=12)


def silenced(totals: list[frozenset[int] | None], groups: set[int]) -> int:
    return sum(each is not None and each <= groups for each in totals)


def best(totals: list[frozenset[int] | None], size: int) -> int:
    return max(silenced(totals, {*each}) for each in itertools.combinations(range(7), size))


@examples(100, 3_000)
@given(TOTALS, st.integers(1, 5))
def test_the_best_is_found_where_there_is_time(
    totals: list[frozenset[int] | None], size: int
) -> None:
    found = most_silenced(totals, size)
    assert len(found.groups) <= size
    assert found.silenced == found.at_most == best(totals, size)
    assert found.silenced == silenced(totals, {*found.groups})


@given(TOTALS, st.integers(3, 5), st.integers(0, 20))
def test_a_search_that_ends_early_says_what_cannot_be_exceeded(
    totals: list[frozenset[int] | None], size: int, most: int
) -> None:
    found = most_silenced(totals, size, most=most)
    assert found.silenced == silenced(totals, {*found.groups})
    assert found.silenced <= best(totals, size) <= found.at_most


def test_progress_is_told() -> None:
    steps: list[int] = []
    most_silenced([frozenset({0, 1, 2}), frozenset({3})], 3, steps.append)
    assert steps
    assert set(steps) == {1}


def test_a_search_of_many_sets_ends_without_an_answer_but_with_a_bound() -> None:
    totals: list[frozenset[int] | None] = [
        frozenset({a, b, c}) for a, b, c in itertools.combinations(range(12), 3)
    ]
    found = most_silenced(totals, 6, most=1_000)
    assert 0 < found.silenced <= 20 <= found.at_most


@pytest.mark.parametrize("size", [1, 2, 3])
def test_without_anything_to_silence_nothing_is(size: int) -> None:
    found = most_silenced([None], size)
    assert (found.groups, found.silenced, found.at_most) == ((), 0, 0)
