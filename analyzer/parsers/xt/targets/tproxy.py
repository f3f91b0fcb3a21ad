"""``-j TPROXY``. Source: extensions/libxt_TPROXY.c."""

from typing import Final

from analyzer.model.iptables.targets import Tproxy
from analyzer.parsers.xt.options import Codec, Options, plain
from analyzer.parsers.xt.values import ADDRESS, MASKED, PORT_MAX, number

#: Its mask is always printed. Source: libxt_TPROXY.c, ``tproxy_tg_save``.
_MARK: Final = Codec(MASKED.read, lambda v: f"{v.value:#x}/{v.mask:#x}")

TPROXY: Final = Options(
    Tproxy,
    (
        plain("--on-port", "port", number(most=PORT_MAX)),
        plain("--on-ip", "address", ADDRESS),
        plain("--tproxy-mark", "mark", _MARK),
    ),
)
