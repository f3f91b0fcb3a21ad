"""``ct count over 20``: the number of connections with the same key.

Source: nft(8), "CT COUNT"; src/json.c, ``connlimit_stmt_json``.
"""

from __future__ import annotations

from typing import Final

from analyzer.model.nft.statements import CtCount
from analyzer.parsers.nft.extension import Extension, Write
from analyzer.parsers.nft.json_values import JsonReader, boolean, integer, known_only, mapping
from analyzer.parsers.nft.words import Words


def _read_json(_: str, body: object, __: JsonReader) -> CtCount:
    given = mapping(body)
    known_only(given, frozenset({"val", "inv"}))
    return CtCount(integer(given.get("val")), boolean(given.get("inv")))


def _read_text(words: Words) -> CtCount | None:
    if words.peek(1) != "count":
        return None
    words.at += 2
    over = words.accept("over")
    return CtCount(words.number(), over)


def _write(given: CtCount, _: Write) -> str:
    return f"ct count {'over ' if given.over else ''}{given.count}"


CT_COUNT: Final = Extension(
    keys=("ct count",),
    words=("ct",),
    types=(CtCount,),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
