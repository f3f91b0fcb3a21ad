"""``fwd to "eth0"``: sends the packet out of another interface.

Source: nft(8), "FWD STATEMENT"; src/json.c, ``fwd_stmt_json``; src/statement.c, ``fwd_stmt_print``.
"""

from __future__ import annotations

from typing import Final

from analyzer.model.nft.statements import Fwd
from analyzer.parsers.nft.extension import Extension, Write
from analyzer.parsers.nft.json_values import JsonReader, known_only, mapping, optional_string
from analyzer.parsers.nft.words import Words


def _read_json(_: str, body: object, read: JsonReader) -> Fwd:
    given = mapping(body)
    known_only(given, frozenset({"dev", "family", "addr"}))
    to = read(given["addr"]) if "addr" in given else None
    return Fwd(read(given.get("dev")), optional_string(given.get("family")), to)


def _read_text(words: Words) -> Fwd:
    words.expect("fwd")
    family = words.take() if words.peek() in {"ip", "ip6"} else None
    words.expect("to")
    first = words.expression()
    if not words.accept("device"):
        return Fwd(first, family)
    return Fwd(words.expression(), family, first)


def _write(given: Fwd, write: Write) -> str:
    family = "" if given.family is None else f"{given.family} "
    if given.address is None:
        return f"fwd {family}to {write(given.device)}"
    return f"fwd {family}to {write(given.address)} device {write(given.device)}"


FWD: Final = Extension(
    keys=("fwd",),
    words=("fwd",),
    types=(Fwd,),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
