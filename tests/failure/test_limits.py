from __future__ import annotations

from fractions import Fraction

import pytest

from analyzer.failure.limits import Threshold, allowed, is_broken


@pytest.mark.parametrize("number", [2, 3, 4, 6, 7, 10, 40])
def test_draws_that_are_rounded_break_no_threshold(number: int) -> None:
    """Half of four endpoints is no more than 50%, whatever the rules' ten digits make of it."""
    assert allowed(Fraction(0), number) == 0
    probabilities = [Fraction(round(Fraction(1 << 31, n)), 1 << 31) for n in range(number, 0, -1)]
    left, shares = Fraction(1), []
    for each in probabilities:
        shares.append(left * each)
        left *= 1 - each
    for dead in range(1, number):
        most = Fraction(dead, number)
        lost = sum(sorted(shares)[-dead:])
        assert lost <= allowed(most, number)
        assert lost > allowed(most - Fraction(1, 1 << 20), number)


def test_a_threshold_that_is_not_known_to_be_kept_is_broken() -> None:
    assert not is_broken(None)
    assert not is_broken(Threshold(most=Fraction(1, 2), beyond=(), is_whole=True))
    assert is_broken(Threshold(most=Fraction(1, 2), beyond=(), is_whole=False))
