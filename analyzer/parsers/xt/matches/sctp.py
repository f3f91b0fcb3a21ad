"""``-m sctp``. Source: extensions/libxt_sctp.c."""

from __future__ import annotations

from typing import Final

from analyzer.model.iptables.matches import MatchSctp
from analyzer.model.iptables.options import ChunkTypes
from analyzer.parsers.words import Words
from analyzer.parsers.xt.options import Codec, Options, negatable
from analyzer.parsers.xt.values import one_of, port_spellings

_SCOPE: Final = one_of("all", "any", "only")


def _read(words: Words) -> ChunkTypes:
    scope = _SCOPE.read(words)
    return ChunkTypes(
        scope, tuple(words.take("chunk types, for example INIT,DATA").text.split(","))
    )


_CHUNKS: Final = Codec(_read, lambda v: f"{v.scope} {','.join(v.types)}")

SCTP: Final = Options(
    MatchSctp,
    (
        *port_spellings(),
        negatable("--chunk-types", "chunk_types", _CHUNKS),
    ),
)
