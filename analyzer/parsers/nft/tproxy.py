"""``tproxy ip to 127.0.0.1:50080``: to a local socket, the packet unchanged.

Source: nft(8), "TPROXY STATEMENT"; src/statement.c, ``tproxy_stmt_print``; src/json.c,
``tproxy_stmt_json``.
"""

from __future__ import annotations

from typing import Any, Final

from analyzer.model.nft.statements import Dnat, Tproxy
from analyzer.parsers.nft.extension import Extension, Write
from analyzer.parsers.nft.json_values import JsonReader, known_only, mapping, optional_string
from analyzer.parsers.nft.nat import NAT, read_address
from analyzer.parsers.nft.words import Words


def _read_json(_: str, body: object, read: JsonReader) -> Tproxy:
    given = mapping(body)
    known_only(given, frozenset({"family", "addr", "port"}))
    return Tproxy(
        optional_string(given.get("family")),
        read(given["addr"]) if "addr" in given else None,
        read(given["port"]) if "port" in given else None,
    )


def _read_text(words: Words) -> Tproxy:
    words.expect("tproxy")
    found: dict[str, Any] = {}
    if words.peek() in {"ip", "ip6"}:
        found["family"] = words.take()
    words.expect("to")
    read_address(words, found)
    return Tproxy(**found)


def _write(given: Tproxy, write: Write) -> str:
    like = Dnat(address=given.address, port=given.port, family=given.family)
    return f"tproxy{NAT.write(like, write).removeprefix('dnat')}"


TPROXY: Final = Extension(
    keys=("tproxy",),
    words=("tproxy",),
    types=(Tproxy,),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
