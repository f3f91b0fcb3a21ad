"""Seconds, shares and numbers of flows for people: to nearest, but bounds are rounded outwards."""

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


def seconds(value: Fraction, *, up: bool | None = None) -> str:
    """Return ``29.6s``, ``6m14s`` or ``1h``; `up` rounds upwards, or not so downwards."""
    tenths = _whole(10 * value, up)
    if value < _FINE and tenths < 10 * _FINE:
        number, rest = divmod(tenths, 10)
        return f"{number}.{rest}s" if rest else f"{number}s"
    whole = _whole(value, up)
    hours, minutes, rest = whole // _HOUR, whole % _HOUR // _MINUTE, whole % _MINUTE
    parts = [(hours, "h"), (minutes, "m"), (rest, "s")]
    return "".join(f"{number}{unit}" for number, unit in parts if number)


def _whole(value: Fraction, up: bool | None) -> int:
    """Return a whole number: the nearest, the next above or the next below."""
    if up is None:
        return round(value)  # of a tie the even one, as Python formats numbers
    return -(-value // 1) if up else value // 1


def span(value: TimeBounds) -> str:
    """Return when something happens: ``29.6s to 1m3s``, ``from 29.6s, if ever``, ``never``."""
    if value.earliest is None:
        return "never"
    if value.latest is None:
        return f"from {seconds(value.earliest, up=False)}, if ever"
    return length(value.earliest, value.latest)


def share(lower: Fraction, upper: Fraction) -> str:
    """Return ``50.0%`` or ``20.0 to 50.0%``; what is not 0 or 1 is never rounded to it."""
    if lower == upper:
        return _percent(lower, None)
    one, other = _percent(lower, up=False), _percent(upper, up=True)
    return one if one == other else f"{one.removesuffix('%')} to {other}"


def _percent(value: Fraction, up: bool | None) -> str:
    if value in {0, 1}:
        return f"{100 * int(value)}.0%"
    number, rest = divmod(_whole(1000 * value, up), 10)
    shown = f"{number}.{rest}"
    return {"0.0": "<0.1%", "100.0": ">99.9%"}.get(shown, f"{shown}%")


def amount(lower: Fraction, upper: Fraction) -> str:
    """Return a whole number, or ``1,000 to 2,000``."""
    if lower == upper:
        return f"{_whole(lower, None):,}"
    one, other = _whole(lower, up=False), _whole(upper, up=True)
    return f"{one:,} to {other:,}"


def length(lower: Fraction, upper: Fraction) -> str:
    """Return a duration."""
    if lower == upper:
        return seconds(lower)
    return f"{seconds(lower, up=False)} to {seconds(upper, up=True)}"
