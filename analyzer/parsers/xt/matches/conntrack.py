"""``-m conntrack``. Source: extensions/libxt_conntrack.c, ``conntrack3_mt_save``."""

from __future__ import annotations

from typing import Final

from analyzer.model.iptables.matches import MatchConntrack
from analyzer.parsers.xt.options import Options, negatable, plain
from analyzer.parsers.xt.values import HOST_OR_NETWORK, PORTS, STRING, one_of, ranges, words_of

STATES: Final = ("INVALID", "NEW", "RELATED", "ESTABLISHED", "UNTRACKED", "SNAT", "DNAT")
STATUSES: Final = ("NONE", "EXPECTED", "SEEN_REPLY", "ASSURED", "CONFIRMED")
_STATE: Final = words_of("connection states, for example NEW", STATES)
_STATUS: Final = words_of("statuses, for example ASSURED", STATUSES)
_SECONDS: Final = ranges(most=0xFFFFFFFF, expected="seconds, or a range of seconds")

CONNTRACK: Final = Options(
    MatchConntrack,
    (
        negatable("--ctstate", "state", _STATE),
        negatable("--ctproto", "protocol", STRING),
        negatable("--ctorigsrc", "original_source", HOST_OR_NETWORK),
        negatable("--ctorigdst", "original_destination", HOST_OR_NETWORK),
        negatable("--ctreplsrc", "reply_source", HOST_OR_NETWORK),
        negatable("--ctrepldst", "reply_destination", HOST_OR_NETWORK),
        negatable("--ctorigsrcport", "original_source_port", PORTS),
        negatable("--ctorigdstport", "original_destination_port", PORTS),
        negatable("--ctreplsrcport", "reply_source_port", PORTS),
        negatable("--ctrepldstport", "reply_destination_port", PORTS),
        negatable("--ctstatus", "status", _STATUS),
        negatable("--ctexpire", "expire", _SECONDS),
        plain("--ctdir", "direction", one_of("ORIGINAL", "REPLY")),
    ),
)
