"""``rt classid``, ``rt ip nexthop``, ``rt mtu``: routing data about the packet.

Source: nft(8), "ROUTING EXPRESSIONS"; src/rt.c.
"""

from __future__ import annotations

from typing import Final

from analyzer.model.nft.expressions import Rt
from analyzer.parsers.nft.extension import Extension, Write
from analyzer.parsers.nft.json_values import (
    JsonReader,
    known_only,
    mapping,
    optional_string,
    string,
)
from analyzer.parsers.nft.words import Words

_KEYS: Final = frozenset({"classid", "nexthop", "mtu", "ipsec"})


def _read_json(_: str, body: object, __: JsonReader) -> Rt:
    given = mapping(body)
    known_only(given, frozenset({"key", "family"}))
    return Rt(string(given.get("key")), optional_string(given.get("family")))


def _read_text(words: Words) -> Rt | None:
    if words.peek(1) in _KEYS:
        words.at += 2
        return Rt(words.peek(-1))
    if words.peek(1) in {"ip", "ip6"} and words.peek(2) == "nexthop":
        words.at += 3
        return Rt("nexthop", words.peek(-2))
    return None


def _write(given: Rt, _: Write) -> str:
    return f"rt {given.key}" if given.family is None else f"rt {given.family} {given.key}"


RT: Final = Extension(
    keys=("rt",),
    words=("rt",),
    types=(Rt,),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
