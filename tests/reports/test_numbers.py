from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic, threshold_from_text
from analyzer.reports.numbers import (
    bounds_fraction,
    bounds_percent,
    fraction,
    most_percent,
    nearest_fraction,
    percent,
)

#: Neither 0 nor 1, down to shares that no float can tell from 0, up to those it calls 1.
between = st.integers(1, 1_200).flatmap(
    lambda e: st.one_of(
        st.integers(1, (1 << e) - 1), st.integers(1, 3).map(lambda n: min(n, (1 << e) - 1))
    ).map(lambda n: Dyadic.of(n, e))
)
nearly_all = st.integers(1, 1_200).map(lambda e: ~Dyadic.of(1, e))


def drawn(text: str) -> Dyadic:
    return Dyadic.of(threshold_from_text(text), 31)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (NEVER, "0"),
        (ALWAYS, "1"),
        (Dyadic.of(1, 1), "1/2"),
        (Dyadic.of(3, 10), "3/1024"),
        (drawn("0.33333333349"), "~1/3"),
        (~drawn("0.33333333349"), "~2/3"),
        (drawn("0.00020000000"), "~1/5000"),
        (Dyadic.of(1, 20), "~1/1048576"),
        (drawn("0.12345678901"), "~10/81"),
    ],
)
def test_a_fraction_is_the_simple_one_that_is_meant(value: Dyadic, shown: str) -> None:
    assert fraction(value) == shown


@given(st.integers(2, 1_000).flatmap(lambda n: st.tuples(st.integers(1, n - 1), st.just(n))))
def test_k_of_n_endpoints_are_shown_as_k_of_n(part: tuple[int, int]) -> None:
    simple = Fraction(*part)
    share = Dyadic.of(round(simple * 2**31), 31)
    exact = simple.denominator <= 1 << 10 and simple.denominator.bit_count() == 1
    sign = "" if exact else "~"
    assert fraction(share) == f"{sign}{simple.numerator}/{simple.denominator}"


_NUMBERS = st.one_of(
    st.floats(min_value=0, max_value=1),
    st.fractions(min_value=0, max_value=1, max_denominator=9_999).map(float),
    st.integers(min_value=0, max_value=1 << 31).map(lambda n: n / (1 << 31)),
    st.sampled_from([0.0, 0.5, 0.375, 1.0]),  # those right between two others
)


@given(number=_NUMBERS, most=st.integers(min_value=1, max_value=10_000) | st.integers(1, 8))
def test_the_nearest_fraction_is_that_of_the_standard_library(number: float, most: int) -> None:
    nearest = Fraction(number).limit_denominator(most)
    assert nearest_fraction(number, most) == (nearest.numerator, nearest.denominator)


def test_a_share_that_no_float_tells_from_0_is_no_crash() -> None:
    assert fraction(Dyadic.of(1, 1_200)) == ""


@given(between | nearly_all)
def test_a_fraction_is_never_none_nor_all_of_what_is_neither(value: Dyadic) -> None:
    shown = fraction(value).lstrip("~")
    assert shown == "" or 0 < Fraction(shown) < 1


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (NEVER, "0.0%"),
        (ALWAYS, "100.0%"),
        (Dyadic.of(1, 1), "50.0%"),
        (drawn("0.33333333349"), "33.3%"),
        (Dyadic.of(1, 31), "<0.1%"),
        (~Dyadic.of(1, 31), ">99.9%"),
    ],
)
def test_a_percentage_has_one_digit_behind_the_point(value: Dyadic, shown: str) -> None:
    assert percent(value) == shown


@given(between | nearly_all, st.integers(0, 6))
def test_a_percentage_is_never_0_nor_100_of_what_is_neither(value: Dyadic, digits: int) -> None:
    shown = percent(value, digits).removesuffix("%")
    limits = {f"{0:.{digits}f}", f"{100:.{digits}f}"}
    assert shown not in limits


@given(between, st.integers(1, 6))
def test_a_percentage_is_right_to_its_last_digit(value: Dyadic, digits: int) -> None:
    shown, exact = percent(value, digits).removesuffix("%"), 100 * value.as_fraction()
    if shown[0] in "<>":
        assert exact < Fraction(shown[1:]) if shown[0] == "<" else exact > Fraction(shown[1:])
    else:
        assert abs(Fraction(shown) - exact) <= Fraction(501, 1_000) / 10**digits


@pytest.mark.parametrize(
    ("lower", "upper", "shown"),
    [
        (Dyadic.of(1, 1), Dyadic.of(1, 1), "50.0%"),
        (NEVER, Dyadic.of(1, 1), "0.0 to 50.0%"),
        (Dyadic.of(1, 31), ALWAYS, "<0.1 to 100.0%"),
        (Dyadic.of(1, 2), ~Dyadic.of(1, 31), "25.0 to >99.9%"),
        # Outwards, but for how draws are rounded.
        (Dyadic.of(3, 4), Dyadic.of(13, 4), "18.7 to 81.3%"),
        (drawn("0.33333333349"), ~drawn("0.33333333349"), "33.3 to 66.7%"),
        (drawn("0.30000000028"), ~drawn("0.30000000028"), "30.0 to 70.0%"),
        (~drawn("0.70000000019"), drawn("0.70000000019"), "30.0 to 70.0%"),
    ],
)
def test_bounds_show_both_ends(lower: Dyadic, upper: Dyadic, shown: str) -> None:
    assert bounds_percent(Bounds(lower, upper)) == shown


@given(between, between)
def test_bounds_are_rounded_outwards(one: Dyadic, other: Dyadic) -> None:
    lower, upper = min(one, other), max(one, other)
    shown = bounds_percent(Bounds(lower, upper)).removesuffix("%").split(" to ")
    draws = Fraction(101, 1 << 20)
    assert shown[0][0] in "<>" or Fraction(shown[0]) <= 100 * lower.as_fraction() + draws
    assert shown[-1][0] in "<>" or Fraction(shown[-1]) >= 100 * upper.as_fraction() - draws


@pytest.mark.parametrize(
    ("value", "shown"),
    [("0", "0.0%"), ("1/3", "33.4%"), ("3/16", "18.8%"), ("3/10", "30.0%"), ("1", "100.0%")],
)
def test_the_most_that_may_be_lost_is_rounded_upwards(value: str, shown: str) -> None:
    assert most_percent(Fraction(value)) == shown


def test_bounds_have_no_fraction() -> None:
    assert bounds_fraction(Bounds(NEVER, ALWAYS)) == ""
    assert bounds_fraction(Bounds(ALWAYS, ALWAYS)) == "1"
