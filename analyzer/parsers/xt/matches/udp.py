"""``-m udp``. Source: extensions/libxt_udp.c."""

from typing import Final

from analyzer.model.iptables.matches import MatchUdp
from analyzer.parsers.xt.options import Options
from analyzer.parsers.xt.values import port_spellings

UDP: Final = Options(MatchUdp, port_spellings())
