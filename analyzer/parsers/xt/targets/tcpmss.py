"""``-j TCPMSS``. Source: extensions/libxt_TCPMSS.c."""

from typing import Final

from analyzer.model.iptables.targets import SetMss
from analyzer.parsers.xt.options import Options, flag, plain
from analyzer.parsers.xt.values import number

TCPMSS: Final = Options(
    SetMss,
    (
        plain("--set-mss", "mss", number(most=0xFFFF)),
        flag("--clamp-mss-to-pmtu", "clamp"),
    ),
)
