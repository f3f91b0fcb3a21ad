"""``-m tcpmss``. Source: extensions/libxt_tcpmss.c."""

from typing import Final

from analyzer.model.iptables.matches import MatchTcpmss
from analyzer.parsers.xt.options import SoleOption
from analyzer.parsers.xt.values import ranges

TCPMSS: Final = SoleOption(
    MatchTcpmss, "mss", "--mss", ranges(most=0xFFFF, expected="an MSS, or a range")
)
