"""``-m state``. Source: extensions/libxt_conntrack.c, ``state_save``."""

from typing import Final

from analyzer.model.iptables.matches import MatchState
from analyzer.parsers.xt.options import SoleOption
from analyzer.parsers.xt.values import words_of

_STATES: Final = ("INVALID", "NEW", "RELATED", "ESTABLISHED", "UNTRACKED")

STATE: Final = SoleOption(
    MatchState, "states", "--state", words_of("connection states, for example NEW", _STATES)
)
