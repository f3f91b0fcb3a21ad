"""Probabilities as people read them."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from analyzer.model.probability import ALWAYS, Bounds, Dyadic

#: Denominators up to here are shown as they are; others as the simple fraction that is meant.
_EXACT_BITS: Final = 10
#: kube-proxy up to 1.14 writes five digits, which moves a share by up to 0.5 % of itself.
_TOLERANCE: Final = 0.005
#: Below this a share has no fraction that says more than its percentage.
_SMALLEST: Final = 1e-9


@lru_cache(maxsize=4096)  # a thousand Services of ten endpoints have the same ten shares
def fraction(value: Dyadic) -> str:
    """Return ``1/2``; ``~1/3`` for the nearest that the kernel can draw; "" for neither."""
    if not value or value == ALWAYS:
        return str(value.numerator)
    if value.exponent <= _EXACT_BITS:
        return f"{value.numerator}/{1 << value.exponent}"
    from fractions import Fraction  # slow to load

    number = float(value)
    if number < _SMALLEST:
        return ""
    # kube-proxy means 1/n, and k dead ones of them mean k/n; up to 1.14 with five digits.
    for most, tolerance in ((64, 1e-8), (5_000, 1e-8), (64, _TOLERANCE / 64), (5_000, 1e-6)):
        simple = Fraction(number).limit_denominator(most)
        near = simple and abs(float(simple) / number - 1) < tolerance
        if near and simple.denominator > 1:
            return f"~{simple.numerator}/{simple.denominator}"
    whole = round(1 / number)
    return f"~1/{whole}" if whole > 1 and abs(1 / whole / number - 1) < _TOLERANCE else ""


def percent(value: Dyadic, digits: int = 1) -> str:
    """Return ``33.3 %``; what is not 0 or 1 is never rounded to it."""
    if not value or value == ALWAYS:
        return f"{100 * value.numerator:.{digits}f} %"
    shown = f"{100 * float(value):.{digits}f}"
    least = 10**-digits
    if float(shown) == 0:
        return f"<{least:.{digits}f} %"
    if float(shown) >= 100:  # noqa: PLR2004  # per cent
        return f">{100 - least:.{digits}f} %"
    return f"{shown} %"


def bounds_percent(bounds: Bounds) -> str:
    """Return ``50.0 %``, or ``20.0 to 50.0 %`` where only bounds are known."""
    if bounds.is_exact:
        return percent(bounds.lower)
    return f"{percent(bounds.lower).removesuffix(' %')} to {percent(bounds.upper)}"


def bounds_fraction(bounds: Bounds) -> str:
    """Return the fraction of an exact share; nothing for bounds."""
    return fraction(bounds.lower) if bounds.is_exact else ""
