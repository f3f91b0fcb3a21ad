"""References to named objects: ``ct helper set "x"``, ``synproxy name "x"``.

Source: src/statement.c, ``objref_stmt_print``; src/json.c, ``objref_stmt_json``.
"""

from __future__ import annotations

from typing import Final

from analyzer.model.nft.statements import ObjectRef
from analyzer.parsers.nft.extension import Extension, NotUnderstood, Write
from analyzer.parsers.nft.json_values import JsonReader
from analyzer.parsers.nft.words import Words

_OF_CT: Final = frozenset({"helper", "timeout", "expectation"})


def _read_json(kind: str, body: object, read: JsonReader) -> ObjectRef:
    if isinstance(body, str):
        return ObjectRef(kind, body)
    if not (isinstance(body, dict) and "map" in body):
        raise NotUnderstood(body)
    return ObjectRef(kind, read(body))


def _read_text(words: Words) -> ObjectRef | None:
    if words.peek() == "synproxy":
        kind = words.take()
        words.expect("name")
        return ObjectRef(kind, words.expression())
    if words.peek(1) not in _OF_CT or words.peek(2) != "set":
        return None
    words.at += 3
    return ObjectRef(f"ct {words.peek(-2)}", words.expression())


def _write(given: ObjectRef, write: Write) -> str:
    verb = "set" if given.kind.startswith("ct ") else "name"
    return f"{given.kind} {verb} {write(given.name)}"


OBJREF: Final = Extension(
    keys=("ct helper", "ct timeout", "ct expectation", "synproxy"),
    words=("ct", "synproxy"),
    types=(ObjectRef,),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
