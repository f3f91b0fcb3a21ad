"""``ip daddr . meta l4proto . th dport vmap @service-ips``.

Source: nft(8), "VERDICT MAPS"; libnftables-json(5), "VERDICT MAP".
"""

from __future__ import annotations

from typing import Final

from analyzer.model.nft.expressions import AnonymousSet, SetRef
from analyzer.model.nft.statements import Vmap
from analyzer.parsers.nft.extension import Extension, NotUnderstood, Write
from analyzer.parsers.nft.json_values import JsonReader, known_only, mapping
from analyzer.parsers.nft.words import Words


def _read_json(_: str, body: object, read: JsonReader) -> Vmap:
    given = mapping(body)
    known_only(given, frozenset({"key", "data"}))
    data = read(given.get("data"))
    if not isinstance(data, SetRef | AnonymousSet):
        raise NotUnderstood(given)
    return Vmap(read(given.get("key")), data)


def _read_text(_: Words) -> None:
    """Return None: the reader of the key reads it."""


def _write(given: Vmap, write: Write) -> str:
    return f"{write(given.key)} vmap {write(given.map)}"


VMAP: Final = Extension(
    keys=("vmap",),
    words=(),
    types=(Vmap,),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
