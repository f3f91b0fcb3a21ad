"""``quota over 25 mbytes used 3 bytes`` and ``quota name "x"``.

Source: nft(8), "QUOTA STATEMENT"; src/statement.c, ``quota_stmt_print``; src/json.c,
``quota_stmt_json``.
"""

from __future__ import annotations

from typing import Final

from analyzer.model.nft.statements import ObjectRef, Quota
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

_UNITS: Final = frozenset({"bytes", "kbytes", "mbytes"})
_NAMES: Final = frozenset({"val", "val_unit", "used", "used_unit", "inv"})


def _read_json(_: str, body: object, read: JsonReader) -> Quota | ObjectRef:
    if isinstance(body, str) or (isinstance(body, dict) and "map" in body):
        return ObjectRef("quota", body if isinstance(body, str) else read(body))
    given = mapping(body)
    known_only(given, _NAMES)
    return Quota(
        amount=integer(given.get("val")),
        unit=string(given.get("val_unit", "bytes")),
        used=integer(given.get("used", 0)),
        used_unit=string(given.get("used_unit", "bytes")),
        over=boolean(given.get("inv")),
    )


def _read_text(words: Words) -> Quota | ObjectRef:
    words.expect("quota")
    if words.accept("name"):
        return ObjectRef("quota", words.expression())
    return read_amount(words)


def read_amount(words: Words) -> Quota:
    """Read what follows ``quota``, in a statement or a named quota.

    Raises:
        NotUnderstood: it is not an amount.
    """
    over = words.accept("over")
    words.accept("until")
    amount, unit = _amount(words)
    used, used_unit = _amount(words) if words.accept("used") else (0, "bytes")
    return Quota(amount=amount, unit=unit, used=used, used_unit=used_unit, over=over)


def _amount(words: Words) -> tuple[int, str]:
    amount, unit = words.number(), words.take()
    if unit not in _UNITS:
        raise NotUnderstood(unit)
    return amount, unit


def _write(given: Quota, _: Write) -> str:
    over = "over " if given.over else ""
    used = f" used {given.used} {given.used_unit}" if given.used else ""
    return f"quota {over}{given.amount} {given.unit}{used}"


QUOTA: Final = Extension(
    keys=("quota",),
    words=("quota",),
    types=(Quota,),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
