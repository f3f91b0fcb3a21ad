"""Shares that mean the same, and shares that do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.diff.shares import (
    BIAS,
    certainly_agree,
    certainly_differ,
    evenly_drawn,
    total,
)
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic, numgen_weights
from tests.support.captures import expected_shares
from tests.support.strategies.probabilities import dyadics

bounds = st.tuples(dyadics, dyadics).map(lambda pair: Bounds(min(pair), max(pair)))
numbers = st.integers(1, 300)


def exactly(share: Dyadic) -> Bounds:
    return Bounds(share, share)


def in_turn(number: int, version: tuple[int, int] = (1, 36)) -> list[Bounds]:
    """Return the shares of rules in iptables mode, as a reader of its own computes them."""
    return [exactly(share) for share in expected_shares(version, number)]


def at_once(number: int) -> list[Bounds]:
    return [exactly(share) for share in numgen_weights(number)]


@given(bounds, bounds)
def test_two_shares_cannot_both_agree_and_differ(a: Bounds, b: Bounds) -> None:
    assert not (certainly_agree(a, b) and certainly_differ(a, b))
    assert certainly_differ(a, b) == certainly_differ(b, a)
    assert certainly_agree(a, b) == certainly_agree(b, a)


@given(bounds, bounds, st.data())
def test_what_is_certain_holds_wherever_in_the_bounds(
    a: Bounds, b: Bounds, data: st.DataObject
) -> None:
    ends = [(each.lower.as_fraction(), each.upper.as_fraction()) for each in (a, b)]
    here, there = (data.draw(st.fractions(low, high)) for low, high in ends)
    within = abs(here - there) <= BIAS.as_fraction()
    assert not (certainly_agree(a, b) and not within)
    assert not (certainly_differ(a, b) and within)


@given(numbers)
def test_every_backend_means_one_of_n(number: int) -> None:
    assert evenly_drawn(in_turn(number)) == number
    assert evenly_drawn(in_turn(number, (1, 14))) == number
    assert evenly_drawn(at_once(number)) == number


@pytest.mark.parametrize("number", [1, 2, 3, 7, 10, 100, 1000])
def test_the_bias_of_two_backends_is_less_than_what_is_allowed(number: int) -> None:
    shares = [share.lower for share in in_turn(number) + at_once(number)]
    assert max(shares).as_fraction() - min(shares).as_fraction() <= BIAS.as_fraction()


def test_five_digits_are_off_by_more_than_that() -> None:
    shares = [share.lower for share in in_turn(3, (1, 14)) + at_once(3)]
    assert max(shares).as_fraction() - min(shares).as_fraction() > BIAS.as_fraction()


@given(numbers.filter(lambda n: n > 1), st.data())
def test_one_share_that_is_off_is_no_one_of_n(number: int, data: st.DataObject) -> None:
    shares = in_turn(number)
    at = data.draw(st.integers(0, number - 1))
    off = shares[at].lower * Dyadic.of(1, 1)
    assert evenly_drawn([*shares[:at], exactly(off), *shares[at + 1 :]]) is None


@pytest.mark.parametrize("draws", [[], [Bounds(NEVER, ALWAYS)], [exactly(NEVER)]])
def test_nothing_and_what_is_not_known_is_not_even(draws: list[Bounds]) -> None:
    assert evenly_drawn(draws) is None


@given(numbers)
def test_shares_of_all_endpoints_are_all_there_is(number: int) -> None:
    assert total(in_turn(number)) == total(at_once(number)) == ALWAYS
