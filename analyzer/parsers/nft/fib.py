"""``fib daddr type``: look-ups in the routing table.

Source: nft(8), "FIB EXPRESSIONS"; src/fib.c, ``fib_expr_print``.
"""

from __future__ import annotations

from typing import Final

from analyzer.model.nft.expressions import Fib
from analyzer.parsers.nft.extension import Extension, NotUnderstood, Write
from analyzer.parsers.nft.json_values import JsonReader, known_only, mapping, string, strings
from analyzer.parsers.nft.words import Words

_FLAGS: Final = frozenset({"saddr", "daddr", "mark", "iif", "oif"})
_RESULTS: Final = frozenset({"type", "oif", "oifname"})


def _read_json(_: str, body: object, __: JsonReader) -> Fib:
    given = mapping(body)
    known_only(given, frozenset({"result", "flags"}))
    return Fib(string(given.get("result")), strings(given.get("flags")))


def _read_text(words: Words) -> Fib:
    words.expect("fib")
    flags = [words.take()]
    while words.accept("."):
        flags.append(words.take())
    result = words.take()
    if result not in _RESULTS or not _FLAGS.issuperset(flags):
        raise NotUnderstood(result)
    return Fib(result, tuple(flags))


def _write(given: Fib, _: Write) -> str:
    return f"fib {' . '.join(given.flags)} {given.result}"


FIB: Final = Extension(
    keys=("fib",),
    words=("fib",),
    types=(Fib,),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
