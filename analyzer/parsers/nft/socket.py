"""``socket transparent`` and ``socket mark``: the packet's local socket.

Source: nft(8), "SOCKET EXPRESSION"; src/socket.c.
"""

from __future__ import annotations

from typing import Final

from analyzer.model.nft.expressions import Socket
from analyzer.parsers.nft.extension import Extension, NotUnderstood, Write
from analyzer.parsers.nft.json_values import JsonReader, known_only, mapping, string
from analyzer.parsers.nft.words import Words

_KEYS: Final = frozenset({"transparent", "mark", "wildcard"})


def _read_json(_: str, body: object, __: JsonReader) -> Socket:
    given = mapping(body)
    known_only(given, frozenset({"key"}))
    return Socket(string(given.get("key")))


def _read_text(words: Words) -> Socket:
    words.expect("socket")
    key = words.take()
    if key not in _KEYS:
        raise NotUnderstood(key)
    return Socket(key)


def _write(given: Socket, _: Write) -> str:
    return f"socket {given.key}"


SOCKET: Final = Extension(
    keys=("socket",),
    words=("socket",),
    types=(Socket,),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
