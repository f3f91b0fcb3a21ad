"""``meta mark set``, ``ct mark set``, ``ip ttl set``.

Source: nft(8), "PAYLOAD STATEMENT", "META STATEMENT" and "CONNTRACK STATEMENT"; src/json.c,
``meta_stmt_json``, ``ct_stmt_json``, ``payload_stmt_json``.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from analyzer.model.nft.expressions import Ct, Expression, Exthdr, Meta, Payload, RawPayload
from analyzer.model.nft.statements import CtSet, Mangle, MetaSet
from analyzer.parsers.nft.extension import Extension, NotUnderstood, Write
from analyzer.parsers.nft.json_values import JsonReader, known_only, mapping
from analyzer.parsers.nft.words import Words

_Set: TypeAlias = "MetaSet | CtSet | Mangle"


def made(key: Expression, value: Expression) -> _Set:
    """Return the statement that sets `key`.

    Raises:
        NotUnderstood: it cannot be set.
    """
    match key:
        case Meta(name):
            return MetaSet(name, value)
        case Ct(name, direction):
            return CtSet(name, value, direction)
        case Payload() | RawPayload() | Exthdr():
            return Mangle(key, value)
        case _:
            raise NotUnderstood(key)


def _read_json(_: str, body: object, read: JsonReader) -> _Set:
    given = mapping(body)
    known_only(given, frozenset({"key", "value"}))
    return made(read(given.get("key")), read(given.get("value")))


def _read_text(_: Words) -> None:
    """Return None: the reader of the key reads it."""


def _write(given: _Set, write: Write) -> str:
    match given:
        case MetaSet(name, value):
            return f"{write(Meta(name))} set {write(value)}"
        case CtSet(name, value, direction):
            return f"{write(Ct(name, direction))} set {write(value)}"
        case Mangle(key, value):
            return f"{write(key)} set {write(value)}"


MANGLE: Final = Extension(
    keys=("mangle",),
    words=(),
    types=(MetaSet, CtSet, Mangle),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
