"""``counter packets 5 bytes 600`` and ``counter name "x"``.

Source: nft(8), "COUNTER STATEMENT"; src/json.c, ``counter_stmt_json``.
"""

from __future__ import annotations

from typing import Final

from analyzer.model.nft.statements import Counter, ObjectRef
from analyzer.parsers.nft.extension import Extension, Write
from analyzer.parsers.nft.json_values import JsonReader, integer, known_only, mapping
from analyzer.parsers.nft.words import Words

_NAMES: Final = frozenset({"packets", "bytes"})


def _read_json(_: str, body: object, read: JsonReader) -> Counter | ObjectRef:
    if body is None:
        return Counter()
    if isinstance(body, str) or "map" in mapping(body):
        return ObjectRef("counter", body if isinstance(body, str) else read(body))
    given = mapping(body)
    known_only(given, _NAMES)
    return Counter(integer(given.get("packets")), integer(given.get("bytes")))


def _read_text(words: Words) -> Counter | ObjectRef:
    words.expect("counter")
    if words.accept("name"):
        return ObjectRef("counter", words.expression())
    if not words.accept("packets"):
        return Counter()
    packets = words.number()
    words.expect("bytes")
    return Counter(packets, words.number())


def _write(given: Counter, _: Write) -> str:
    if given.packets is None:
        return "counter"
    return f"counter packets {given.packets} bytes {given.bytes or 0}"


COUNTER: Final = Extension(
    keys=("counter",),
    words=("counter",),
    types=(Counter,),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
