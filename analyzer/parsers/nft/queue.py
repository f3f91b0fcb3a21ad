"""``queue flags bypass to 1-3``, and ``queue num 1-3 bypass`` of older versions.

Source: nft(8), "QUEUE STATEMENT"; src/statement.c, ``queue_stmt_print``; src/json.c,
``queue_stmt_json``.
"""

from __future__ import annotations

from typing import Final

from analyzer.model.nft.expressions import Expression
from analyzer.model.nft.statements import Queue
from analyzer.parsers.nft.extension import Extension, NotUnderstood, Write
from analyzer.parsers.nft.json_values import JsonReader, known_only, mapping, strings
from analyzer.parsers.nft.words import Words

_FLAGS: Final = frozenset({"bypass", "fanout"})


def _made(number: Expression | None, flags: tuple[str, ...]) -> Queue:
    if not _FLAGS.issuperset(flags):
        raise NotUnderstood(flags)
    return Queue(number, flags)


def _read_json(_: str, body: object, read: JsonReader) -> Queue:
    given = {} if body is None else mapping(body)
    known_only(given, frozenset({"num", "flags"}))
    return _made(read(given["num"]) if "num" in given else None, strings(given.get("flags")))


def _read_text(words: Words) -> Queue:
    words.expect("queue")
    flags = words.flags() if words.accept("flags") else ()
    number = None
    if words.peek() in {"to", "num"}:
        words.at += 1
        number = words.expression()
    if words.peek() in _FLAGS:
        flags += words.flags()
    return _made(number, flags)


def _write(given: Queue, write: Write) -> str:
    flags = f" flags {','.join(given.flags)}" if given.flags else ""
    return f"queue{flags}{'' if given.number is None else f' to {write(given.number)}'}"


QUEUE: Final = Extension(
    keys=("queue",),
    words=("queue",),
    types=(Queue,),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
