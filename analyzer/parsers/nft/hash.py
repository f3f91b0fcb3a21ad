"""``jhash ip saddr mod 8 seed 0xdead`` and ``symhash mod 2``.

Source: nft(8), "HASH EXPRESSIONS"; src/hash.c, ``hash_expr_print``.
"""

from __future__ import annotations

from typing import Final

from analyzer.model.nft.expressions import Jhash, Symhash
from analyzer.parsers.nft.extension import Extension, NotUnderstood, Write
from analyzer.parsers.nft.json_values import (
    JsonReader,
    integer,
    known_only,
    mapping,
    optional_integer,
)
from analyzer.parsers.nft.words import Words


def _read_json(kind: str, body: object, read: JsonReader) -> Jhash | Symhash:
    given = mapping(body)
    known_only(given, frozenset({"mod", "offset", "expr", "seed"}))
    mod, offset = _mod(integer(given.get("mod"))), integer(given.get("offset", 0))
    if kind == "symhash":
        return Symhash(mod, offset)
    return Jhash(read(given.get("expr")), mod, optional_integer(given.get("seed")), offset)


def _mod(given: int) -> int:
    if given == 0:
        raise NotUnderstood("mod 0")
    return given


def _read_text(words: Words) -> Jhash | Symhash:
    if words.take() == "symhash":
        words.expect("mod")
        mod = _mod(words.number())
        return Symhash(mod, words.number() if words.accept("offset") else 0)
    inner = words.expression()
    words.expect("mod")
    mod = _mod(words.number())
    seed = words.number() if words.accept("seed") else None
    return Jhash(inner, mod, seed, words.number() if words.accept("offset") else 0)


def _write(given: Jhash | Symhash, write: Write) -> str:
    offset = f" offset {given.offset}" if given.offset else ""
    match given:
        case Symhash(mod):
            return f"symhash mod {mod}{offset}"
        case Jhash(inner, mod, seed):
            shown = "" if seed is None else f" seed {seed:#x}"
            return f"jhash {write(inner)} mod {mod}{shown}{offset}"


HASH: Final = Extension(
    keys=("jhash", "symhash"),
    words=("jhash", "symhash"),
    types=(Jhash, Symhash),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
