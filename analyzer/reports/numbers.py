"""Probabilities, formatted for people."""

from __future__ import annotations

from functools import lru_cache

from analyzer.model.probability import ALWAYS, Bounds, Dyadic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction
    from typing import Final

#: Denominators up to here are shown as they are; others as the simple fraction that is meant.
_EXACT_BITS: Final = 10
#: kube-proxy up to 1.14 writes five digits, which moves a share by up to 0.5 % of itself.
_TOLERANCE: Final = 0.005
#: Shares of draws differ from those that are meant by less than 1 over 2 to the power of this.
_DRAWN_BITS: Final = 20
#: Below this a share has no fraction that says more than its percentage.
_SMALLEST: Final = 1e-9


@lru_cache(maxsize=4096)  # a thousand Services of ten endpoints have the same ten shares
def fraction(value: Dyadic) -> str:
    """Return ``1/2``; ``~1/3`` for the nearest that the kernel can draw; "" for neither."""
    if not value or value == ALWAYS:
        return str(value.numerator)
    if value.exponent <= _EXACT_BITS:
        return f"{value.numerator}/{1 << value.exponent}"
    number = float(value)
    if number < _SMALLEST:
        return ""
    # kube-proxy means 1/n, and k dead ones of them mean k/n; up to 1.14 with five digits.
    for most, tolerance in ((64, 1e-8), (5_000, 1e-8), (64, _TOLERANCE / 64), (5_000, 1e-6)):
        numerator, denominator = nearest_fraction(number, most)
        near = numerator and abs(numerator / denominator / number - 1) < tolerance
        if near and denominator > 1:
            return f"~{numerator}/{denominator}"
    whole = round(1 / number)
    return f"~1/{whole}" if whole > 1 and abs(1 / whole / number - 1) < _TOLERANCE else ""


def nearest_fraction(number: float, most: int) -> tuple[int, int]:
    """Return the fraction nearest to `number` whose denominator is at most `most`.

    `number` is from 0 to 1, `most` 1 or more.
    It is what `Fraction.limit_denominator` gives, whose module takes as long to load as a report
    of a small dump takes in all.

    Source: best rational approximations are convergents of the continued fraction, or lie
    between two of them.
    """
    numerator, denominator = number.as_integer_ratio()
    if denominator <= most:
        return numerator, denominator
    rest, divisor = numerator, denominator
    # Numerator and denominator of the convergent before the last, and of the last.
    before, last = (0, 1), (1, 0)
    while True:
        whole, remainder = divmod(rest, divisor)
        room = (most - before[1]) // last[1] if last[1] else whole
        if whole > room:
            break
        before, last = last, (before[0] + whole * last[0], before[1] + whole * last[1])
        rest, divisor = divisor, remainder
    between = (before[0] + room * last[0], before[1] + room * last[1])
    # How far both are off, in parts of one over all three denominators.
    far = abs(last[0] * denominator - numerator * last[1]) * between[1]
    other = abs(between[0] * denominator - numerator * between[1]) * last[1]
    return last if far <= other else between


@lru_cache(maxsize=4096)
def percent(value: Dyadic, digits: int = 1, *, up: bool | None = None) -> str:
    """Return ``33.3%``; what is not 0 or 1 is never rounded to it.

    To nearest, or upwards if `up`, or not so downwards.
    """
    if not value or value == ALWAYS:
        return f"{100 * value.numerator:.{digits}f}%"
    shown = f"{100 * float(value):.{digits}f}" if up is None else _directed(value, digits, up)
    least = 10**-digits
    if float(shown) == 0:
        return f"<{least:.{digits}f}%"
    if float(shown) >= 100:  # noqa: PLR2004  # per cent
        return f">{100 - least:.{digits}f}%"
    return f"{shown}%"


def _directed(value: Dyadic, digits: int, up: bool) -> str:
    """Return the percentage of `digits` that is next below `value` or, if `up`, next above."""
    unit = 10 ** (digits + 2)
    whole, rest = divmod(value.numerator * unit, 1 << value.exponent)
    # Thresholds of draws are rounded: 3 of 10 endpoints get 30%, and no bound above that.
    slack = unit << value.exponent >> _DRAWN_BITS
    whole += rest > slack if up else rest + slack >= 1 << value.exponent
    return f"{whole // 10**digits}.{whole % 10**digits:0{digits}}" if digits else f"{whole}"


def most_percent(value: Fraction) -> str:
    """Return ``33.4%`` for a share that is a third at most: an upper bound, rounded upwards."""
    drawn = (value.numerator << _DRAWN_BITS) - value.denominator  # as in `_directed`
    tenths = -(-1000 * drawn // (value.denominator << _DRAWN_BITS))
    return f"{tenths // 10}.{tenths % 10}%"


def limit_percent(value: Fraction) -> str:
    """Return ``10%`` or ``49.99%``: a limit from an option, not rounded to another one."""
    return f"{str(float(100 * value)).removesuffix('.0')}%"


def bounds_percent(bounds: Bounds) -> str:
    """Return ``50.0%``, or ``20.0 to 50.0%`` where only bounds are known, rounded outwards."""
    if bounds.is_exact:
        return percent(bounds.lower)
    lower, upper = percent(bounds.lower, up=False), percent(bounds.upper, up=True)
    return f"{lower.removesuffix('%')} to {upper}"


def bounds_fraction(bounds: Bounds) -> str:
    """Return the fraction of an exact share; empty for bounds."""
    return fraction(bounds.lower) if bounds.is_exact else ""
