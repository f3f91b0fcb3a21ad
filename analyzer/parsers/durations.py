"""Durations and rates as people write them: ``1m30s``, ``20s-1m``, ``200/s``, exactly."""

from __future__ import annotations

import re
from fractions import Fraction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_UNITS: Final = {
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
}
#: Of a number and of its decimals, at most nine digits.
_PART: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h|d)")
_WHOLE: Final = re.compile(rf"(?:{_PART.pattern})+")
_RATE: Final = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)(?:/(s|m|min|h))?")


def duration_from_text(text: str) -> Fraction | None:
    """Return the seconds of ``40s``, ``1m30s`` or ``0.5s``; None if it is no duration."""
    if not text.isascii() or not _WHOLE.fullmatch(text):
        return None
    return sum(
        (Fraction(number) * _UNITS[unit] for number, unit in _PART.findall(text)), Fraction(0)
    )


def durations_from_text(text: str) -> tuple[Fraction, Fraction] | None:
    """Return the least and the most seconds of ``40s`` or ``20s-1m``; None if it is neither."""
    first, sign, second = text.partition("-")
    lower, upper = duration_from_text(first), duration_from_text(second if sign else first)
    if lower is None or upper is None or upper < lower:
        return None
    return lower, upper


def rate_from_text(text: str) -> Fraction | None:
    """Return the rate per second of ``200/s``, ``200`` or ``12000/min``; None if it is none."""
    found = _RATE.fullmatch(text) if text.isascii() else None
    if found is None:
        return None
    number, unit = found.groups()
    return Fraction(number) / _UNITS[(unit or "s").removesuffix("in")]
