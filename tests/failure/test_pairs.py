"""The worst pairs, found without looking at each, are those that looking at each finds."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.failure.costs import cost, singles
from analyzer.failure.incidence import Incidence, rank
from analyzer.failure.pairs import descending, worst_pairs
from tests.support.effort import examples
from tests.support.incidences import NODES, Placed, names, placed

PAIRS = [*itertools.combinations(range(len(NODES)), 2)]


def key(nodes: Incidence, pair: tuple[int, ...], *, by_mean: bool) -> tuple[int, int, int]:
    found = cost(nodes, pair)
    worst, gone, total = rank(found.worst), len(found.silenced), rank(found.upper)
    return (total, worst, gone) if by_mean else (worst, gone, total)


@pytest.mark.parametrize("by_mean", [False, True])
@examples(60, 2_000)
@given(given_=placed(), top=st.integers(1, 10))
def test_no_pair_is_worse_than_those_that_are_found(
    given_: Placed, top: int, by_mean: bool
) -> None:
    nodes = given_.nodes
    found = worst_pairs(nodes, singles(nodes), top, by_mean=by_mean)
    every = sorted((key(nodes, pair, by_mean=by_mean) for pair in PAIRS), reverse=True)
    assert [key(nodes, pair, by_mean=by_mean) for pair in found.worst] == every[:top]
    assert (found.number, found.is_complete) == (len(PAIRS), True)
    assert len(set(found.worst)) == len(found.worst)


@given(placed())
def test_pairs_that_silence_a_service_are_counted(given_: Placed) -> None:
    nodes = given_.nodes
    truth = sum(any(e.state.value == "silenced" for e in given_.losses(names(p))) for p in PAIRS)
    assert worst_pairs(nodes, singles(nodes), 1).silencing == truth


@given(
    st.lists(st.integers(0, 9), max_size=6),
    st.lists(st.integers(0, 9), max_size=6),
    st.booleans(),
)
def test_sums_of_pairs_come_in_order_and_none_is_left_out(
    first: list[int], second: list[int], within: bool
) -> None:
    numbers = dict(enumerate([*first, *second]))
    one = sorted(range(len(first)), key=numbers.__getitem__, reverse=True)
    other = one if within else sorted(numbers, key=numbers.__getitem__, reverse=True)
    given_ = [*descending(one, other, numbers.__getitem__)]
    sums = [numbers[a] + numbers[b] for a, b in given_]
    assert sums == sorted(sums, reverse=True)
    assert set(given_) == {(min(a, b), max(a, b)) for a in one for b in other if a != b}
    if within:
        assert len(given_) == len(set(given_))
