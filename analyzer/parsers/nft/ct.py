"""``ct state``, ``ct original ip daddr``: conntrack's data about the flow.

Source: nft(8), "CONNTRACK EXPRESSIONS"; src/ct.c, ``ct_templates`` and ``ct_expr_print``.
"""

from __future__ import annotations

from typing import Final

from analyzer.model.nft.expressions import Ct
from analyzer.parsers.nft.extension import Extension, NotUnderstood, Write
from analyzer.parsers.nft.json_values import (
    JsonReader,
    known_only,
    mapping,
    optional_string,
    string,
)
from analyzer.parsers.nft.words import Words

KEYS: Final = frozenset(
    [
        "state",
        "direction",
        "status",
        "mark",
        "expiration",
        "helper",
        "label",
        "l3proto",
        "protocol",
        "saddr",
        "daddr",
        "proto-src",
        "proto-dst",
        "packets",
        "bytes",
        "avgpkt",
        "zone",
        "id",
        "event",
        "secmark",
    ]
)


def _read_json(_: str, body: object, __: JsonReader) -> Ct:
    given = mapping(body)
    known_only(given, frozenset({"key", "dir", "family"}))
    key, family = string(given.get("key")), optional_string(given.get("family"))
    direction = optional_string(given.get("dir"))
    return Ct(key if family is None else f"{family} {key}", direction)


def _read_text(words: Words) -> Ct:
    words.expect("ct")
    direction = words.take() if words.peek() in {"original", "reply"} else None
    family = f"{words.take()} " if words.peek() in {"ip", "ip6"} else ""
    key = words.take()
    if key not in KEYS or (family and key not in {"saddr", "daddr"}):
        raise NotUnderstood(key)
    return Ct(family + key, direction)


def _write(given: Ct, _: Write) -> str:
    return f"ct {given.key}" if given.direction is None else f"ct {given.direction} {given.key}"


CT: Final = Extension(
    keys=("ct",),
    words=("ct",),
    types=(Ct,),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
