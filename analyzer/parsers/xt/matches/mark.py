"""``-m mark``. Source: extensions/libxt_mark.c."""

from typing import Final

from analyzer.model.iptables.matches import MatchMark
from analyzer.parsers.xt.options import SoleOption
from analyzer.parsers.xt.values import MASKED

MARK: Final = SoleOption(MatchMark, "mark", "--mark", MASKED)
