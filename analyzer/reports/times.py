"""Seconds, shares and numbers of flows for people: bounds are rounded outwards."""

from __future__ import annotations

from fractions import Fraction

from analyzer.outage.clocks import TimeBounds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_MINUTE: Final = 60
_HOUR: Final = 3600
#: Below this a time is shown to a tenth of a second.
_FINE: Final = 120


def seconds(value: Fraction, *, up: bool = False) -> str:
    """Return ``29.6s``, ``6m14s`` or ``1h``; `up` rounds upwards."""
    sign = -1 if up else 1
    if value < _FINE:
        tenths = sign * (sign * value * 10 // 1)
        whole, rest = divmod(int(tenths), 10)
        return f"{whole}.{rest}s" if rest else f"{whole}s"
    whole = int(sign * (sign * value // 1))
    hours, minutes, rest = whole // _HOUR, whole % _HOUR // _MINUTE, whole % _MINUTE
    parts = [(hours, "h"), (minutes, "m"), (rest, "s")]
    return "".join(f"{number}{unit}" for number, unit in parts if number)


def span(value: TimeBounds) -> str:
    """Return when something happens: ``29.6s to 1m3s``, ``from 29.6s, if ever``, ``never``."""
    if value.earliest is None:
        return "never"
    lower = seconds(value.earliest)
    if value.latest is None:
        return f"from {lower}, if ever"
    upper = seconds(value.latest, up=True)
    return lower if value.earliest == value.latest or lower == upper else f"{lower} to {upper}"


def share(lower: Fraction, upper: Fraction) -> str:
    """Return ``50.0%`` or ``20.0 to 50.0%``; what is not 0 or 1 is never rounded to it."""
    one, other = _percent(lower), _percent(upper)
    return one if one == other else f"{one.removesuffix('%')} to {other}"


def _percent(value: Fraction) -> str:
    if value in {0, 1}:
        return f"{100 * int(value)}.0%"
    shown = f"{float(100 * value):.1f}"
    return {"0.0": "<0.1%", "100.0": ">99.9%"}.get(shown, f"{shown}%")


def amount(lower: Fraction, upper: Fraction) -> str:
    """Return a whole number, or ``1,000 to 2,000``."""
    one, other = lower // 1, -(-upper // 1)
    return f"{one:,}" if one == other or lower == upper else f"{one:,} to {other:,}"


def length(lower: Fraction, upper: Fraction) -> str:
    """Return a duration."""
    one, other = seconds(lower), seconds(upper, up=True)
    return one if one == other or lower == upper else f"{one} to {other}"
