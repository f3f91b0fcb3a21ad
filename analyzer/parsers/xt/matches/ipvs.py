"""``-m ipvs``. Source: extensions/libxt_ipvs.c, ``ipvs_mt_save``."""

from typing import Final

from analyzer.model.iptables.matches import MatchIpvs
from analyzer.parsers.xt.options import FLAG, Options, negatable, plain
from analyzer.parsers.xt.values import NETWORK, PORT_MAX, WORD, number, one_of

_PORT: Final = number(most=PORT_MAX)

IPVS: Final = Options(
    MatchIpvs,
    (
        negatable("--ipvs", "is_ipvs", FLAG),
        negatable("--vproto", "protocol", WORD),
        negatable("--vaddr", "address", NETWORK),
        negatable("--vport", "port", _PORT),
        plain("--vdir", "direction", one_of("ORIGINAL", "REPLY")),
        negatable("--vmethod", "method", one_of("GATE", "IPIP", "MASQ")),
        negatable("--vportctl", "control_port", _PORT),
    ),
)
