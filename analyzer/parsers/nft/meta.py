"""``meta mark``, ``iifname``: the kernel's metadata about the packet.

Source: nft(8), "META EXPRESSIONS"; src/meta.c, ``meta_templates`` and ``meta_key_is_unqualified``.
"""

from __future__ import annotations

from typing import Final

from analyzer.model.nft.expressions import Meta
from analyzer.parsers.nft.extension import Extension, NotUnderstood, Write
from analyzer.parsers.nft.json_values import JsonReader, known_only, mapping, string
from analyzer.parsers.nft.words import Words

#: Keys that are written without ``meta``.
_UNQUALIFIED: Final = (
    "mark",
    "iif",
    "iifname",
    "iiftype",
    "iifgroup",
    "oif",
    "oifname",
    "oiftype",
    "oifgroup",
    "skuid",
    "skgid",
    "nftrace",
    "rtclassid",
    "ibrname",
    "obrname",
    "pkttype",
    "cpu",
    "cgroup",
    "time",
    "day",
    "hour",
)
#: All keys of ``meta``.
KEYS: Final = frozenset(
    (
        *_UNQUALIFIED,
        *[
            "length",
            "protocol",
            "priority",
            "random",
            "nfproto",
            "l4proto",
            "secpath",
            "ipsec",
            "secmark",
            "sdif",
            "sdifname",
            "ibrpvid",
            "ibrvproto",
            "ibrhwaddr",
            "iifkind",
            "oifkind",
            "broute",
        ],
    )
)


def _read_json(_: str, body: object, __: JsonReader) -> Meta:
    given = mapping(body)
    known_only(given, frozenset({"key"}))
    return Meta(string(given.get("key")))


def _read_text(words: Words) -> Meta:
    key = words.take()
    if key == "meta":
        key = words.take()
    if key not in KEYS:
        raise NotUnderstood(key)
    return Meta(key)


def _write(given: Meta, _: Write) -> str:
    return f"meta {given.key}"


META: Final = Extension(
    keys=("meta",),
    words=("meta", *_UNQUALIFIED),
    types=(Meta,),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
