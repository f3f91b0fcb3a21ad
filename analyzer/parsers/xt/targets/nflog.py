"""``-j NFLOG``. Source: extensions/libxt_NFLOG.c, ``nflog_print``."""

from typing import Final

from analyzer.model.iptables.targets import NfLog
from analyzer.parsers.xt.options import Options, plain
from analyzer.parsers.xt.values import STRING, number

_COUNT: Final = number(most=0xFFFFFFFF)

NFLOG: Final = Options(
    NfLog,
    (
        plain("--nflog-prefix", "prefix", STRING),
        plain("--nflog-group", "group", number(most=0xFFFF)),
        plain("--nflog-range", "range", _COUNT),
        plain("--nflog-size", "size", _COUNT),
        plain("--nflog-threshold", "threshold", number(most=0xFFFF)),
    ),
)
