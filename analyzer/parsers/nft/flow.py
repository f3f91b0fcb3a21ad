"""``flow add @flowtable``: later packets of the flow bypass the rules.

Source: nft(8), "FLOW STATEMENT"; src/json.c, ``flow_offload_stmt_json``.
"""

from __future__ import annotations

from typing import Final

from analyzer.model.nft.statements import FlowAdd
from analyzer.parsers.nft.extension import Extension, NotUnderstood, Write
from analyzer.parsers.nft.json_values import JsonReader, known_only, mapping, string
from analyzer.parsers.nft.words import Words


def _name(text: str) -> str:
    if text[:1] != "@" or not text[1:]:
        raise NotUnderstood(text)
    return text[1:]


def _read_json(_: str, body: object, __: JsonReader) -> FlowAdd:
    given = mapping(body)
    known_only(given, frozenset({"op", "flowtable"}))
    if given.get("op") != "add":
        raise NotUnderstood(given)
    return FlowAdd(_name(string(given.get("flowtable"))))


def _read_text(words: Words) -> FlowAdd:
    words.expect("flow")
    words.expect("add")
    return FlowAdd(_name(words.take()))


def _write(given: FlowAdd, _: Write) -> str:
    return f"flow add @{given.flowtable}"


FLOW: Final = Extension(
    keys=("flow",),
    words=("flow",),
    types=(FlowAdd,),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
