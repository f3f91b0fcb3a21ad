"""``notrack``: keeps the flow out of conntrack.

Source: nft(8), "NOTRACK STATEMENT".
"""

from __future__ import annotations

from typing import Final

from analyzer.model.nft.statements import Notrack
from analyzer.parsers.nft.extension import Extension, NotUnderstood, Write
from analyzer.parsers.nft.json_values import JsonReader
from analyzer.parsers.nft.words import Words


def _read_json(_: str, body: object, __: JsonReader) -> Notrack:
    if body is not None:
        raise NotUnderstood(body)
    return Notrack()


def _read_text(words: Words) -> Notrack:
    words.expect("notrack")
    return Notrack()


def _write(_: Notrack, __: Write) -> str:
    return "notrack"


NOTRACK: Final = Extension(
    keys=("notrack",),
    words=("notrack",),
    types=(Notrack,),
    read_json=_read_json,
    read_text=_read_text,
    write=_write,
)
