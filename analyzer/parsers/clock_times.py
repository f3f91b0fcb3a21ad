"""Times in file names, and time windows in options."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
#: ISO 8601, with any character that file names have in place of colons.
_TIME: Final = re.compile(
    r"(?<!\d)(\d{4})-?(\d\d)-?(\d\d)[T_ .-]?(\d\d)[-:.h_]?(\d\d)"
    r"(?:[-:.m_]?(\d\d)(?:[.,](\d{1,6}))?)?(Z|[+-]\d\d:?\d\d(?!\d))?(?!\d)"
)
#: Seconds since 1970, of this century; digits within a word belong to a name: i-0123456789abcdef0.
_SECONDS: Final = re.compile(r"(?<![0-9A-Za-z])(\d{10})(?:\.(\d{1,6}))?(?![0-9A-Za-z])")


def seconds_of(time: datetime) -> Fraction:
    """Return seconds since 1970, exactly."""
    return Fraction((time - _EPOCH) // _MICROSECOND, 1_000_000)


def time_at(seconds: Fraction) -> datetime:
    """Return the time `seconds` after 1970, in UTC."""
    return _EPOCH + _MICROSECOND * int(seconds * 1_000_000)


def time_in(text: str) -> Fraction | None:
    """Return the first time in a text, in seconds since 1970; None if there is none.

    A time without a time zone is taken as UTC.
    """
    for pattern, read in ((_TIME, _of_calendar), (_SECONDS, _of_seconds)):
        for found in pattern.finditer(text):
            seconds = read(found)
            if seconds is not None:
                return seconds
    return None


def without_times(text: str) -> str:
    """Return a name without the times in it, and without the characters that separated them."""
    bare = _SECONDS.sub("", _TIME.sub("", text))
    return re.sub(r"[-_.@]{2,}", "-", bare).strip("-_.@ ")


def _of_calendar(found: re.Match[str]) -> Fraction | None:
    year, month, day, hour, minute, second, part, zone = found.groups()
    try:
        time = datetime(
            int(year), int(month), int(day), int(hour), int(minute), int(second or 0),
            tzinfo=_zone(zone),
        )  # fmt: skip
        return seconds_of(time) + Fraction(int(part or 0), 10 ** len(part or ""))
    except (ValueError, OverflowError):
        return None


def _zone(text: str | None) -> timezone:
    if text in {None, "Z"}:
        return UTC
    assert text is not None
    digits = text[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-offset if text[0] == "-" else offset)


def _of_seconds(found: re.Match[str]) -> Fraction:
    part = found[2] or ""
    return int(found[1]) + Fraction(int(part or 0), 10 ** len(part))


def window_from_text(text: str) -> tuple[str, Fraction | None, Fraction | None] | None:
    """Return the name and times of ``NAME@FROM..TO``; None if they are no times, or out of order.

    Without ``@`` the name applies at all times; either time may be left out.
    """
    name, sign, times = text.partition("@")
    if not sign:
        return name, None, None
    first, dots, last = times.partition("..")
    found = [_whole(each) if each else None for each in (first, last)]
    start, end = found
    wrong = (first and start is None) or (last and end is None) or not dots
    if wrong or (start is not None and end is not None and end <= start):
        return None
    return name, start, end


def _whole(text: str) -> Fraction | None:
    is_time = _TIME.fullmatch(text) or _SECONDS.fullmatch(text)
    return time_in(text) if is_time else None
