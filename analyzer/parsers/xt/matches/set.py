"""``-m set``. Source: extensions/libxt_set.c, ``set_save_v4``; names are never quoted."""

from __future__ import annotations

from typing import Final

from analyzer.model.iptables.matches import MatchSet
from analyzer.parsers.words import Words, bare
from analyzer.parsers.xt.options import FLAG, Codec, Options, Spelling, negatable, plain
from analyzer.parsers.xt.values import number

_COUNT: Final = number(most=0xFFFFFFFFFFFFFFFF)


def _read(words: Words) -> tuple[str, str]:
    return words.take("the name of a set").text, words.take("src or dst").text


_SET: Final = Codec(_read, lambda names: " ".join(map(bare, names)))


def _only_negated(text: str, name: str) -> Spelling:
    """Return an option that is written only when it is negated."""
    return Spelling(text=f"! {text}", name=name, codec=FLAG)


SET: Final = Options(
    MatchSet,
    (
        negatable("--match-set", "match_set", _SET, "--set"),
        Spelling(text="--return-nomatch", name="return_nomatch", codec=FLAG),
        _only_negated("--update-counters", "no_update_counters"),
        _only_negated("--update-subcounters", "no_update_subcounters"),
        negatable("--packets-eq", "packets_equal", _COUNT),
        plain("--packets-lt", "packets_below", _COUNT),
        plain("--packets-gt", "packets_above", _COUNT),
        negatable("--bytes-eq", "bytes_equal", _COUNT),
        plain("--bytes-lt", "bytes_below", _COUNT),
        plain("--bytes-gt", "bytes_above", _COUNT),
    ),
)
