"""Numbers of pages are printed as the command line prints them."""

from __future__ import annotations

import random

import pytest

from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic
from analyzer.reports.json_distributions import shares_of
from analyzer.reports.numbers import bounds_percent, fraction, percent
from tests.support.pages.scripts import asked

pytestmark = pytest.mark.packages


def written(share: Dyadic) -> list[object]:
    return [hex(share.numerator), share.exponent]


def some() -> list[Dyadic]:
    """Return shares of every kind: of few bits, of draws, near 0 and 1, and long ones."""
    drawn = random.Random(21)
    found = [NEVER, ALWAYS, Dyadic.of(1, 2_000), ~Dyadic.of(1, 2_000), Dyadic.of(1, 1_100)]
    found += [
        Dyadic.of(n, e) for e in range(1, 12) for n in range(1, 1 << e, max(1, (1 << e) >> 6))
    ]
    for size in (2, 3, 7, 12, 33, 64, 65, 130):
        thresholds = [round((1 << 31) / left) for left in range(size, 1, -1)]
        shares = shares_of(thresholds, size)
        found += [*shares[:4], *shares[-2:]]
        found.append(shares_of([round(round(1e5 / size) / 1e5 * (1 << 31))], 2)[0])
    for _ in range(800):
        exponent = drawn.choice([3, 10, 11, 31, 53, 54, 62, 64, 65, 66, 100, 310, 1_500])
        found.append(Dyadic.of(drawn.getrandbits(exponent), exponent))
        # Halves of the last digit that is shown, and what is next to them.
        tie = Dyadic.of(drawn.randrange(8_000) << 51, 64)
        found += [tie, Dyadic.of(tie.over(200) + 1, 200)]
    return found


def test_shares_are_printed_alike() -> None:
    shares = some()
    (told,) = asked(("numbers", list(map(written, shares))))
    for share, (of_page, fraction_of_page, number) in zip(shares, told, strict=True):
        assert (of_page, fraction_of_page) == (percent(share), fraction(share)), share
        assert number == float(share), share


def test_halves_are_rounded_to_even_as_python_does() -> None:
    (told,) = asked(("numbers", [["0x1", 4], ["0x3", 4], ["0x5", 4], ["0xd", 4], ["0xf", 4]]))
    assert [each[0] for each in told] == ["6.2%", "18.8%", "31.2%", "81.2%", "93.8%"]


def test_shares_are_compared_exactly() -> None:
    drawn = random.Random(4)
    shares = [*some()[:60], *[Dyadic.of(drawn.getrandbits(70), 70) for _ in range(20)]]
    pairs = [(drawn.choice(shares), drawn.choice(shares)) for _ in range(500)]
    (told,) = asked(("compared", [[written(a), written(b)] for a, b in pairs]))
    assert told == [(b < a) - (a < b) for a, b in pairs]


def test_bounds_are_rounded_outwards_alike() -> None:
    shares = some()
    pairs = [(min(pair), max(pair)) for pair in zip(shares, shares[7:], strict=False)]
    (told,) = asked(("bounds", [[written(lower), written(upper)] for lower, upper in pairs]))
    assert told == [bounds_percent(Bounds(lower, upper)) for lower, upper in pairs]
