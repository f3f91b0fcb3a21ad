"""``ipsec in reqid``: IPsec's data about the packet.

Source: nft(8), "IPSEC EXPRESSIONS"; src/xfrm.c; src/json.c, ``xfrm_expr_json``.
"""

from __future__ import annotations

from typing import Final

from analyzer.model.nft.expressions import Ipsec
from analyzer.parsers.nft.extension import Extension, NotUnderstood, Write
from analyzer.parsers.nft.json_values import (
    JsonReader,
    integer,
    known_only,
    mapping,
    optional_string,
    string,
)
from analyzer.parsers.nft.words import Words

_KEYS: Final = frozenset({"reqid", "spi", "saddr", "daddr"})


def _read_json(_: str, body: object, __: JsonReader) -> Ipsec:
    given = mapping(body)
    known_only(given, frozenset({"key", "family", "dir", "spnum"}))
    return Ipsec(
        string(given.get("dir")),
        string(given.get("key")),
        optional_string(given.get("family")),
        integer(given.get("spnum", 0)),
    )


def _read_text(words: Words) -> Ipsec:
    words.expect("ipsec")
    direction = words.take()
    level = words.number() if words.accept("spnum") else 0
    family = words.take() if words.peek() in {"ip", "ip6"} else None
    key = words.take()
    if direction not in {"in", "out"} or key not in _KEYS:
        raise NotUnderstood(key)
    return Ipsec(direction, key, family, level)


def _write(given: Ipsec, _: Write) -> str:
    level = f"spnum {given.number} " if given.number else ""
    family = f"{given.family} " if given.family else ""
    return f"ipsec {given.direction} {level}{family}{given.key}"


IPSEC: Final = Extension(
    keys=("ipsec",),
    words=("ipsec",),
    types=(Ipsec,),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
