"""``-m connmark``. Source: extensions/libxt_connmark.c."""

from typing import Final

from analyzer.model.iptables.matches import MatchConnmark
from analyzer.parsers.xt.options import SoleOption
from analyzer.parsers.xt.values import MASKED

CONNMARK: Final = SoleOption(MatchConnmark, "mark", "--mark", MASKED)
