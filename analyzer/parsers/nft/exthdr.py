"""Fields of optional headers: of IPv6, of TCP and IP options, of SCTP chunks.

Source: nft(8), "EXTENSION HEADER EXPRESSIONS"; src/json.c, ``exthdr_expr_json``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from analyzer.model.nft.expressions import Exthdr
from analyzer.parsers.nft.extension import Extension, NotUnderstood, Write
from analyzer.parsers.nft.json_values import (
    JsonReader,
    known_only,
    mapping,
    optional_string,
    string,
)
from analyzer.parsers.nft.words import Words

#: Fields of extension headers.
IPV6: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset(fields.split())
    for name, fields in {
        "hbh": "nexthdr hdrlength",
        "rt": "nexthdr hdrlength type seg-left",
        "frag": "nexthdr frag-off reserved reserved2 more-fragments id",
        "dst": "nexthdr hdrlength",
        "mh": "nexthdr hdrlength type reserved checksum",
        "srh": "last-entry flags tag",
    }.items()
}
#: Fields of options and chunks.
FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "tcp option": frozenset(
        ["kind", "length", "size", "count", "left", "right", "tsval", "tsecr", "subtype"]
    ),
    "ip option": frozenset(["type", "length", "value", "ptr", "addr"]),
    "sctp chunk": frozenset(
        [
            "type",
            "flags",
            "length",
            "init-tag",
            "a-rwnd",
            "num-outbound-streams",
            "num-inbound-streams",
            "initial-tsn",
            "cum-tsn-ack",
            "num-gap-ack-blocks",
            "num-dup-tsns",
            "lowest-tsn",
            "seqno",
            "new-cum-tsn",
            "tsn",
            "stream",
            "ssn",
            "ppid",
        ]
    ),
}


def _read_json(kind: str, body: object, _: JsonReader) -> Exthdr:
    given = mapping(body)
    known_only(given, frozenset({"name", "field", "offset"}))
    if given.get("offset", 0) != 0:
        raise NotUnderstood(given)
    return Exthdr(kind, string(given.get("name")), optional_string(given.get("field")))


def _read_text(words: Words) -> Exthdr | None:
    head = words.peek()
    if head == "exthdr":
        words.at += 1
        return Exthdr("exthdr", words.string())
    if head in IPV6:
        if words.peek(1) not in IPV6[head]:
            return None
        words.at += 2
        return Exthdr("exthdr", head, words.peek(-1))
    kind = f"{head} {words.peek(1)}"
    if kind not in FIELDS or words.peek(2)[:1] == "@":
        return None
    words.at += 2
    name = words.string()
    if words.peek() not in FIELDS[kind]:
        return Exthdr(kind, name)
    return Exthdr(kind, name, words.take())


def _write(given: Exthdr, _: Write) -> str:
    head = given.kind
    if head == "exthdr" and given.field is not None:
        return f"{given.name} {given.field}"
    return f"{head} {given.name}" if given.field is None else f"{head} {given.name} {given.field}"


EXTHDR: Final = Extension(
    keys=("exthdr", *FIELDS),
    words=("exthdr", *IPV6, "tcp", "ip", "sctp"),
    types=(Exthdr,),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
