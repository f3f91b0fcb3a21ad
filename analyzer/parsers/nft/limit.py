"""``limit rate over 10/minute burst 7 packets`` and ``limit name "x"``.

Source: nft(8), "LIMIT STATEMENT"; src/statement.c, ``limit_stmt_print``; src/json.c,
``limit_stmt_json``.
"""

from __future__ import annotations

import re
from typing import Final

from analyzer.model.nft.statements import Limit, ObjectRef
from analyzer.parsers.nft.extension import Extension, NotUnderstood, Write
from analyzer.parsers.nft.json_values import (
    JsonReader,
    boolean,
    integer,
    known_only,
    mapping,
    string,
)
from analyzer.parsers.nft.words import Words

_RATE: Final = re.compile(r"(?:(\d{1,20})|([a-z]+))/(second|minute|hour|day|week)")
_BYTES: Final = frozenset({"bytes", "kbytes", "mbytes"})
#: nft's default, which it does not print.
_BURST: Final = 5
_NAMES: Final = frozenset({"rate", "per", "burst", "inv", "rate_unit", "burst_unit"})


def _read_json(_: str, body: object, read: JsonReader) -> Limit | ObjectRef:
    if isinstance(body, str) or (isinstance(body, dict) and "map" in body):
        return ObjectRef("limit", body if isinstance(body, str) else read(body))
    given = mapping(body)
    known_only(given, _NAMES)
    unit = string(given.get("rate_unit", "packets"))
    return Limit(
        rate=integer(given.get("rate")),
        per=string(given.get("per", "second")),
        burst=integer(given.get("burst", 0)),
        over=boolean(given.get("inv")),
        rate_unit=unit,
        burst_unit=unit if unit == "packets" else string(given.get("burst_unit", "bytes")),
    )


def _read_text(words: Words) -> Limit | ObjectRef:
    words.expect("limit")
    if words.accept("name"):
        return ObjectRef("limit", words.expression())
    words.expect("rate")
    return read_rate(words)


def read_rate(words: Words) -> Limit:
    """Read what follows ``rate``, in a statement or a named limit.

    Raises:
        NotUnderstood: it is not a rate.
    """
    over = words.accept("over")
    rate, unit, per = _rate(words)
    burst, burst_unit = (_BURST, "packets") if unit == "packets" else (0, "bytes")
    if words.accept("burst"):
        burst, burst_unit = words.number(), words.take()
        if (burst_unit in _BYTES) == (unit == "packets"):
            raise NotUnderstood(burst_unit)
    return Limit(rate=rate, per=per, burst=burst, over=over, rate_unit=unit, burst_unit=burst_unit)


def _rate(words: Words) -> tuple[int, str, str]:
    """Read ``10/minute`` or ``10 kbytes/second``."""
    word = words.take()
    found = _RATE.fullmatch(word)
    if found is not None and found[1]:
        return int(found[1]), "packets", found[3]
    found = _RATE.fullmatch(words.take())
    if found is None or found[2] not in _BYTES or not (word.isascii() and word.isdecimal()):
        raise NotUnderstood(word)
    words.at -= 2
    rate = words.number()
    words.at += 1
    return rate, found[2], found[3]


def _write(given: Limit, _: Write) -> str:
    over = "over " if given.over else ""
    unit = "" if given.rate_unit == "packets" else f" {given.rate_unit}"
    usual = (_BURST, "packets") if given.rate_unit == "packets" else (0, "bytes")
    shown = given.burst, given.burst_unit
    burst = "" if shown == usual else f" burst {given.burst} {given.burst_unit}"
    return f"limit rate {over}{given.rate}{unit}/{given.per}{burst}"


LIMIT: Final = Extension(
    keys=("limit",),
    words=("limit",),
    types=(Limit,),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
