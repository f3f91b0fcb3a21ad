"""``-m limit``. Source: extensions/libxt_limit.c, ``parse_rate`` and ``print_rate``."""

from __future__ import annotations

import re
from typing import Final

from analyzer.model.iptables.matches import MatchLimit
from analyzer.parsers.words import Words
from analyzer.parsers.xt.options import Codec, Options, plain
from analyzer.parsers.xt.values import number

#: Units of the kernel's period, per second.
_SCALE: Final = 10_000
_UNITS: Final = {"day": 86_400 * _SCALE, "hour": 3_600 * _SCALE, "min": 60 * _SCALE, "sec": _SCALE}
_RATE: Final = re.compile(r"(\d{1,10})(?:/([a-z]+))?")
_EXPECTED: Final = "a rate, for example 5/sec or 10/minute"


def _read(words: Words) -> int:
    word = words.take(_EXPECTED)
    found = _RATE.fullmatch(word.text.lower())
    unit = found[2] or "sec" if found else ""
    length = _unit_length(unit)
    if found is None or length is None or not 0 < int(found[1]) <= length:
        words.fail(f"expected {_EXPECTED}", span=word.span)
    return length // int(found[1])


def _unit_length(unit: str) -> int | None:
    """Return the length of a unit; each may be spelled out or shortened: s, sec, second."""
    for full, short in (("second", "sec"), ("minute", "min"), ("hour", "hour"), ("day", "day")):
        if unit and full.startswith(unit):
            return _UNITS[short]
    return None


def _write(period: int) -> str:
    """Return the rate in the largest unit that does not round it, as iptables chooses."""
    name, length = "day", _UNITS["day"]
    for shorter, each in list(_UNITS.items())[1:]:
        if period > each or each // period < each % period:
            break
        name, length = shorter, each
    return f"{length // period}/{name}"


LIMIT: Final = Options(
    MatchLimit,
    (
        plain("--limit", "period", Codec(_read, _write)),
        plain("--limit-burst", "burst", number(most=10_000), unless=5),
    ),
)
