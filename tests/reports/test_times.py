"""Times and shares as people read them: never better than they are."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.outage.clocks import ANY_TIME, NEVER, TimeBounds
from analyzer.parsers.durations import duration_from_text
from analyzer.reports.times import amount, length, seconds, share, span

times = st.fractions(min_value=0, max_value=100_000, max_denominator=1_000)


@given(times.filter(bool))
def test_times_are_rounded_outwards(value: Fraction) -> None:
    lower, upper = (duration_from_text(seconds(value, up=up) or "0s") for up in (False, True))
    assert lower is not None
    assert upper is not None
    assert lower <= value <= upper
    assert upper - lower <= (Fraction(1, 10) if value < 120 else 1)


@given(times.filter(bool))
def test_a_single_time_is_the_nearest_that_is_shown(value: Fraction) -> None:
    nearest = duration_from_text(seconds(value))
    assert nearest is not None
    assert abs(nearest - value) <= (
        Fraction(1, 20) if value < Fraction(2399, 20) else Fraction(1, 2)
    )
    below, above = seconds(value, up=False), seconds(value, up=True)
    assert seconds(value) in {below, above}
    assert span(TimeBounds(value, value)) == length(value, value) == seconds(value)


@given(st.fractions(0, 1, max_denominator=10_000), st.fractions(0, 1, max_denominator=10_000))
def test_bounds_on_shares_are_rounded_outwards(one: Fraction, other: Fraction) -> None:
    lower, upper = min(one, other), max(one, other)
    told = share(lower, upper).removesuffix("%").split(" to ")
    for text, value in ((told[0], lower), (told[-1], upper)):
        shown = Fraction(text.strip("<>")) / 100
        assert abs(shown - value) <= Fraction(1, 1000)
    if len(told) == 2 and not set("<>") & set(share(lower, upper)):
        assert Fraction(told[0]) / 100 <= lower < upper <= Fraction(told[1]) / 100


@pytest.mark.parametrize(
    ("when", "shown"),
    [
        (NEVER, "never"),
        (ANY_TIME, "from 0s, if ever"),
        (TimeBounds(Fraction(148, 5), Fraction(64)), "29.6s to 64s"),
        (TimeBounds(Fraction(20), Fraction(20)), "20s"),
        (TimeBounds(Fraction(330), Fraction(3600)), "5m30s to 1h"),
        (TimeBounds(Fraction(1499, 10), Fraction(1499, 10)), "2m30s"),
        (TimeBounds(Fraction(1499, 10), Fraction(1501, 10)), "2m29s to 2m31s"),
        (TimeBounds(Fraction(1499, 10), None), "from 2m29s, if ever"),
        (TimeBounds(Fraction(2399, 20), Fraction(2399, 20)), "2m"),
        (TimeBounds(Fraction(1997, 100), Fraction(2003, 100)), "19.9s to 20.1s"),
    ],
)
def test_spans(when: TimeBounds, shown: str) -> None:
    assert span(when) == shown


@pytest.mark.parametrize(
    ("lower", "upper", "shown"),
    [
        (Fraction(0), Fraction(0), "0.0%"),
        (Fraction(1, 2), Fraction(1, 2), "50.0%"),
        (Fraction(1, 3), Fraction(1), "33.3 to 100.0%"),
        (Fraction(2, 3), Fraction(2, 3), "66.7%"),
        (Fraction(1, 3), Fraction(2, 3), "33.3 to 66.7%"),
        (Fraction(0), Fraction(1, 3), "0.0 to 33.4%"),
        (Fraction(2, 3), Fraction(1), "66.6 to 100.0%"),
        (Fraction(1, 10**6), Fraction(1, 10**6), "<0.1%"),
        (1 - Fraction(1, 10**6), Fraction(1), "99.9 to 100.0%"),
    ],
)
def test_shares(lower: Fraction, upper: Fraction, shown: str) -> None:
    assert share(lower, upper) == shown


def test_amounts_and_lengths() -> None:
    assert amount(Fraction(5, 2), Fraction(2001, 2)) == "2 to 1,001"
    assert amount(Fraction(7), Fraction(7)) == "7"
    assert amount(Fraction(39, 4), Fraction(39, 4)) == "10"
    assert length(Fraction(1), Fraction(90)) == "1s to 90s"
    assert length(Fraction(0), Fraction(0)) == "0s"
