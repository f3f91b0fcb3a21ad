"""``xt match "comment"``: xtables extensions, which nft cannot print.

Source: libnftables-json(5), "XT"; src/xt.c, ``xt_stmt_xlate``.
"""

from __future__ import annotations

from typing import Final

from analyzer.model.nft.statements import Xt
from analyzer.parsers.nft.extension import Extension, NotUnderstood, Write
from analyzer.parsers.nft.json_values import JsonReader, known_only, mapping, string
from analyzer.parsers.nft.words import Words, quoted

_KINDS: Final = frozenset({"match", "target", "watcher"})
#: Represents what nft printed as a blank only; see `translated`.
_HIDDEN: Final = {"\0match": "match", "\0target": "target"}


def _made(kind: str, name: str) -> Xt:
    if kind not in _KINDS:
        raise NotUnderstood(kind)
    return Xt(kind, name)


def _read_json(_: str, body: object, __: JsonReader) -> Xt:
    given = mapping(body)
    known_only(given, frozenset({"type", "name"}))
    return _made(string(given.get("type")), string(given.get("name")))


def _read_text(words: Words) -> Xt:
    head = words.take()
    if head in _HIDDEN:
        return Xt(_HIDDEN[head])
    kind = words.take()
    return _made(kind, words.string())


def _write(given: Xt, _: Write) -> str:
    if not given.name:
        return ""  # the blanks around it stay, which is how it was found
    return f"xt {given.kind} {quoted(given.name)}"


XT: Final = Extension(
    keys=("xt",),
    words=("xt", *_HIDDEN),
    types=(Xt,),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
