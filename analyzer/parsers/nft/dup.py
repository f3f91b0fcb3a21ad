"""``dup to 10.0.0.1 device "eth0"``: sends a copy elsewhere.

Source: nft(8), "DUP STATEMENT"; src/json.c, ``dup_stmt_json``.
"""

from __future__ import annotations

from typing import Final

from analyzer.model.nft.statements import Dup
from analyzer.parsers.nft.extension import Extension, Write
from analyzer.parsers.nft.json_values import JsonReader, known_only, mapping
from analyzer.parsers.nft.words import Words


def _read_json(_: str, body: object, read: JsonReader) -> Dup:
    given = mapping(body)
    known_only(given, frozenset({"addr", "dev"}))
    return Dup(read(given.get("addr")), read(given["dev"]) if "dev" in given else None)


def _read_text(words: Words) -> Dup:
    words.expect("dup")
    words.expect("to")
    to = words.expression()
    return Dup(to, words.expression() if words.accept("device") else None)


def _write(given: Dup, write: Write) -> str:
    device = "" if given.device is None else f" device {write(given.device)}"
    return f"dup to {write(given.address)}{device}"


DUP: Final = Extension(
    keys=("dup",),
    words=("dup",),
    types=(Dup,),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
