"""``-j NFQUEUE``. Source: extensions/libxt_NFQUEUE.c."""

from typing import Final

from analyzer.model.iptables.targets import Queue
from analyzer.parsers.xt.options import Options, flag, plain
from analyzer.parsers.xt.values import number, ranges

_BALANCE: Final = ranges(most=0xFFFF, expected="a range of queues, for example 0:3")

NFQUEUE: Final = Options(
    Queue,
    (
        plain("--queue-num", "number", number(most=0xFFFF)),
        plain("--queue-balance", "balance", _BALANCE),
        flag("--queue-bypass", "bypass"),
        flag("--queue-cpu-fanout", "cpu_fanout"),
    ),
)
