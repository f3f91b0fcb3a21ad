"""Durations and rates, exactly."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.parsers.durations import duration_from_text, durations_from_text, rate_from_text
from analyzer.reports.times import seconds


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("40s", Fraction(40)),
        ("1m30s", Fraction(90)),
        ("0.1s", Fraction(1, 10)),
        ("500ms", Fraction(1, 2)),
        ("1h", Fraction(3600)),
        ("30d", Fraction(30 * 86400)),
        ("0s", Fraction(0)),
    ],
)
def test_durations(text: str, wanted: Fraction) -> None:
    assert duration_from_text(text) == wanted


@pytest.mark.parametrize(
    "text", ["", "40", "s", "-1s", "1 s", "1s ", "1x", "1e3s", "\u0661s", "1..5s"]
)
def test_what_is_no_duration(text: str) -> None:
    assert duration_from_text(text) is None
    assert durations_from_text(text) is None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("40s", (40, 40)), ("20s-1m", (20, 60)), ("0s-1s", (0, 1)), ("1m-20s", None), ("1s-", None)],
)
def test_ranges(text: str, wanted: tuple[int, int] | None) -> None:
    assert durations_from_text(text) == (wanted and tuple(map(Fraction, wanted)))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("200/s", Fraction(200)),
        ("200", Fraction(200)),
        ("0.1/s", Fraction(1, 10)),
        ("12000/min", Fraction(200)),
        ("60/m", Fraction(1)),
        ("3600/h", Fraction(1)),
        ("0", Fraction(0)),
        ("-1", None),
        ("1/x", None),
        ("200 / s", None),
    ],
)
def test_rates(text: str, wanted: Fraction | None) -> None:
    assert rate_from_text(text) == wanted


@given(st.integers(1, 86_400))
def test_whole_seconds_are_read_as_they_are_shown(number: int) -> None:
    assert duration_from_text(seconds(Fraction(number))) == number
