"""The picture of a curve: nothing is certain in it that is not, nor gone."""

from __future__ import annotations

from fractions import Fraction

from analyzer.outage.timeline import Curve, LossStep
from analyzer.reports.timeline_plot import HEIGHT, LOST, PERHAPS, WIDTH, plot


def curve(*steps: tuple[int, str, str]) -> Curve:
    made = tuple(
        LossStep(Fraction(at), Fraction(lower), Fraction(upper)) for at, lower, upper in steps
    )
    return Curve(steps=made, until=Fraction(640))


def rows(of: Curve) -> list[str]:
    return [line.partition("|")[2] for line in plot(of)][:HEIGHT]


def test_half_is_three_rows_of_five_until_it_ends() -> None:
    assert rows(curve((0, "1/2", "1/2"), (320, "0", "0"))) == ["", "", *[LOST * 32] * 3]


def test_what_may_be_lost_stands_above_what_is() -> None:
    assert rows(curve((0, "1/5", "1"))) == [*[PERHAPS * WIDTH] * 4, LOST * WIDTH]


def test_a_little_is_not_nothing() -> None:
    assert rows(curve((0, "0", "1/1000000"))) == ["", "", "", "", PERHAPS * WIDTH]
    assert rows(curve((0, "0", "0"))) == [""] * HEIGHT


def test_a_slice_shows_the_worst_and_the_best_in_it() -> None:
    # A column is ten seconds: that of the step has both.
    assert rows(curve((0, "1", "1"), (15, "0", "0")))[0] == LOST + PERHAPS


def test_it_fits_into_80_columns() -> None:
    assert max(map(len, plot(curve((0, "1", "1"))))) <= 79
