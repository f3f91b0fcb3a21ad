"""``osf name``: the sender's operating system, as fingerprinted.

Source: nft(8), "OSF EXPRESSION"; src/osf.c.
"""

from __future__ import annotations

from typing import Final

from analyzer.model.nft.expressions import Osf
from analyzer.parsers.nft.extension import Extension, NotUnderstood, Write
from analyzer.parsers.nft.json_values import JsonReader, known_only, mapping, string
from analyzer.parsers.nft.words import Words


def _read_json(_: str, body: object, __: JsonReader) -> Osf:
    given = mapping(body)
    known_only(given, frozenset({"key"}))
    return Osf(string(given.get("key")))


def _read_text(words: Words) -> Osf:
    words.expect("osf")
    key = words.take()
    if key not in {"name", "version"}:
        raise NotUnderstood(key)
    return Osf(key)


def _write(given: Osf, _: Write) -> str:
    return f"osf {given.key}"


OSF: Final = Extension(
    keys=("osf",),
    words=("osf",),
    types=(Osf,),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
