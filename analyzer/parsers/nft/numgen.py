"""``numgen random mod 3``, ``numgen inc mod 3 offset 1``.

Source: nft(8), "NUMGEN EXPRESSION"; src/numgen.c, ``numgen_expr_print``.
"""

from __future__ import annotations

from typing import Final

from analyzer.model.nft.expressions import Numgen
from analyzer.parsers.nft.extension import Extension, NotUnderstood, Write
from analyzer.parsers.nft.json_values import JsonReader, integer, known_only, mapping, string
from analyzer.parsers.nft.words import Words

_NAMES: Final = frozenset({"mode", "mod", "offset"})


def _made(mode: str, mod: int, offset: int) -> Numgen:
    if mode not in {"random", "inc"} or mod == 0:
        raise NotUnderstood(mode)
    return Numgen(mode, mod, offset)


def _read_json(_: str, body: object, __: JsonReader) -> Numgen:
    given = mapping(body)
    known_only(given, _NAMES)
    offset = integer(given.get("offset", 0))
    return _made(string(given.get("mode")), integer(given.get("mod")), offset)


def _read_text(words: Words) -> Numgen:
    words.expect("numgen")
    mode = words.take()
    words.expect("mod")
    mod = words.number()
    return _made(mode, mod, words.number() if words.accept("offset") else 0)


def _write(given: Numgen, _: Write) -> str:
    offset = f" offset {given.offset}" if given.offset else ""
    return f"numgen {given.mode} mod {given.mod}{offset}"


NUMGEN: Final = Extension(
    keys=("numgen",),
    words=("numgen",),
    types=(Numgen,),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
