"""``-m iprange``. Source: extensions/libxt_iprange.c."""

from typing import Final

from analyzer.model.iptables.matches import MatchIprange
from analyzer.parsers.xt.options import Options, negatable
from analyzer.parsers.xt.values import ADDRESS_RANGE

IPRANGE: Final = Options(
    MatchIprange,
    (
        negatable("--src-range", "source", ADDRESS_RANGE),
        negatable("--dst-range", "destination", ADDRESS_RANGE),
    ),
)
