"""``-m conntrack``. Source: extensions/libxt_conntrack.c, ``conntrack3_mt_save``."""

from __future__ import annotations

from typing import Final

from analyzer.model.matches import MatchConntrack
from analyzer.parsers.xt.options import Options, Spelling
from analyzer.parsers.xt.values import NETWORK, PORTS, STRING, one_of, ranges, words_list

STATES: Final = ("INVALID", "NEW", "RELATED", "ESTABLISHED", "UNTRACKED", "SNAT", "DNAT")
STATUSES: Final = ("NONE", "EXPECTED", "SEEN_REPLY", "ASSURED", "CONFIRMED")
_STATE: Final = words_list("connection states, as NEW", lambda word: word in STATES)
_STATUS: Final = words_list("statuses, as ASSURED", lambda word: word in STATUSES)
_SECONDS: Final = ranges(most=0xFFFFFFFF, expected="seconds, or a range of them")

CONNTRACK: Final = Options(
    MatchConntrack,
    (
        Spelling(text="--ctstate", name="state", codec=_STATE, negatable=True),
        Spelling(text="--ctproto", name="protocol", codec=STRING, negatable=True),
        Spelling(text="--ctorigsrc", name="original_source", codec=NETWORK, negatable=True),
        Spelling(text="--ctorigdst", name="original_destination", codec=NETWORK, negatable=True),
        Spelling(text="--ctreplsrc", name="reply_source", codec=NETWORK, negatable=True),
        Spelling(text="--ctrepldst", name="reply_destination", codec=NETWORK, negatable=True),
        Spelling(text="--ctorigsrcport", name="original_source_port", codec=PORTS, negatable=True),
        Spelling(
            text="--ctorigdstport",
            name="original_destination_port",
            codec=PORTS,
            negatable=True,
        ),
        Spelling(text="--ctreplsrcport", name="reply_source_port", codec=PORTS, negatable=True),
        Spelling(
            text="--ctrepldstport", name="reply_destination_port", codec=PORTS, negatable=True
        ),
        Spelling(text="--ctstatus", name="status", codec=_STATUS, negatable=True),
        Spelling(text="--ctexpire", name="expire", codec=_SECONDS, negatable=True),
        Spelling(text="--ctdir", name="direction", codec=one_of("ORIGINAL", "REPLY")),
    ),
)
