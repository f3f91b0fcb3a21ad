"""``-m recent``, which kube-proxy's session affinity uses. Source: libxt_recent.c."""

from __future__ import annotations

from typing import Final

from analyzer.model.iptables.matches import MatchRecent
from analyzer.parsers.words import Words
from analyzer.parsers.xt.options import Codec, Options, flag, negatable, plain
from analyzer.parsers.xt.values import WORD, number


def _word(text: str) -> Codec[str]:
    """Return the codec of an option that represents itself: ``--rcheck`` gives rcheck."""
    return Codec(read=lambda _: text, write=lambda _: "", takes_word=False)


_COUNT: Final = number(most=0xFFFFFFFF)
_ACTIONS: Final = ("set", "rcheck", "update", "remove")


class Recent:
    """Its action and its side are options without a value, one of each."""

    _options: Final = Options(
        MatchRecent,
        (
            *(negatable(f"--{a}", "action", _word(a)) for a in _ACTIONS),
            plain("--seconds", "seconds", _COUNT),
            flag("--reap", "reap"),
            plain("--hitcount", "hit_count", _COUNT),
            flag("--rttl", "ttl"),
            plain("--name", "name", WORD),
            plain("--mask", "mask", WORD),
            plain("--rsource", "side", _word("rsource")),
            plain("--rdest", "side", _word("rdest")),
        ),
    )

    def parse(self, words: Words) -> MatchRecent:
        """Take the options."""
        return self._options.parse(words)

    def render(self, value: MatchRecent) -> str:
        """Return the options in the order of ``recent_save``."""
        rest = self._options.render(value, without={"action", "side"})
        negation = "! " if value.action.negated else ""
        return f"{negation}--{value.action.value} {rest} --{value.side}"


RECENT: Final = Recent()
