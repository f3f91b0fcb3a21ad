"""``-m addrtype``. Source: extensions/libxt_addrtype.c."""

from __future__ import annotations

from typing import Final

from analyzer.model.iptables.matches import MatchAddrtype
from analyzer.parsers.xt.options import Options, flag, negatable
from analyzer.parsers.xt.values import words_of

TYPES: Final = (
    "UNSPEC",
    "UNICAST",
    "LOCAL",
    "BROADCAST",
    "ANYCAST",
    "MULTICAST",
    "BLACKHOLE",
    "UNREACHABLE",
    "PROHIBIT",
    "THROW",
    "NAT",
    "XRESOLVE",
)
_TYPE: Final = words_of("address types, for example LOCAL", TYPES)

ADDRTYPE: Final = Options(
    MatchAddrtype,
    (
        negatable("--src-type", "source_type", _TYPE),
        negatable("--dst-type", "destination_type", _TYPE),
        flag("--limit-iface-in", "limit_in_interface"),
        flag("--limit-iface-out", "limit_out_interface"),
    ),
)
