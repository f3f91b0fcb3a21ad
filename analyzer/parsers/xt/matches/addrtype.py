"""``-m addrtype``. Source: extensions/libxt_addrtype.c."""

from __future__ import annotations

from typing import Final

from analyzer.model.matches import MatchAddrtype
from analyzer.parsers.xt.options import FLAG, Options, Spelling
from analyzer.parsers.xt.values import words_list

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
_TYPE: Final = words_list("address types, as LOCAL", lambda word: word in TYPES)

ADDRTYPE: Final = Options(
    MatchAddrtype,
    (
        Spelling(text="--src-type", name="source_type", codec=_TYPE, negatable=True),
        Spelling(text="--dst-type", name="destination_type", codec=_TYPE, negatable=True),
        Spelling(text="--limit-iface-in", name="limit_in_interface", codec=FLAG),
        Spelling(text="--limit-iface-out", name="limit_out_interface", codec=FLAG),
    ),
)
