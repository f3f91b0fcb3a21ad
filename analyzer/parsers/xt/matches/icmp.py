"""``-m icmp``. Source: extensions/libxt_icmp.c, libipt_icmp.c."""

from __future__ import annotations

from typing import Final

from analyzer.model.iptables.matches import MatchIcmp
from analyzer.parsers.words import Words
from analyzer.parsers.xt.icmp_type import read_type, write_type
from analyzer.parsers.xt.options import Codec, SoleOption

#: Names that people write; iptables-save prints numbers. RFC 792, RFC 1256.
_NAMES: Final = {
    "echo-reply": (0, None),
    "pong": (0, None),
    "destination-unreachable": (3, None),
    "network-unreachable": (3, 0),
    "host-unreachable": (3, 1),
    "protocol-unreachable": (3, 2),
    "port-unreachable": (3, 3),
    "fragmentation-needed": (3, 4),
    "source-quench": (4, None),
    "redirect": (5, None),
    "echo-request": (8, None),
    "ping": (8, None),
    "router-advertisement": (9, None),
    "router-solicitation": (10, None),
    "time-exceeded": (11, None),
    "ttl-exceeded": (11, None),
    "parameter-problem": (12, None),
    "timestamp-request": (13, None),
    "timestamp-reply": (14, None),
    "address-mask-request": (17, None),
    "address-mask-reply": (18, None),
    "any": (None, None),
}


def _read(words: Words) -> MatchIcmp:
    kind, code = read_type(words, _NAMES)
    return MatchIcmp(None if kind == 0xFF else kind, code)  # noqa: PLR2004  # any, to the kernel


def _write(match: MatchIcmp) -> str:
    return "any" if match.icmp_type is None else write_type(match.icmp_type, match.code)


ICMP: Final = SoleOption.whole("--icmp-type", Codec(_read, _write))
