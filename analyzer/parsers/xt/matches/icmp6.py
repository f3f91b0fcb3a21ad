"""``-m icmp6``. Source: extensions/libip6t_icmp6.c."""

from __future__ import annotations

from typing import Final

from analyzer.model.iptables.matches import MatchIcmp6
from analyzer.parsers.words import Words
from analyzer.parsers.xt.icmp_type import read_type, write_type
from analyzer.parsers.xt.options import Codec, SoleOption

#: Names that people write; ip6tables-save prints numbers. RFC 4443, RFC 4861.
_NAMES: Final = {
    "destination-unreachable": (1, None),
    "no-route": (1, 0),
    "address-unreachable": (1, 3),
    "port-unreachable": (1, 4),
    "packet-too-big": (2, None),
    "time-exceeded": (3, None),
    "ttl-exceeded": (3, None),
    "parameter-problem": (4, None),
    "echo-request": (128, None),
    "ping": (128, None),
    "echo-reply": (129, None),
    "pong": (129, None),
    "router-solicitation": (133, None),
    "router-advertisement": (134, None),
    "neighbour-solicitation": (135, None),
    "neighbor-solicitation": (135, None),
    "neighbour-advertisement": (136, None),
    "neighbor-advertisement": (136, None),
    "redirect": (137, None),
}


def _read(words: Words) -> MatchIcmp6:
    kind, code = read_type(words, _NAMES)
    assert kind is not None
    return MatchIcmp6(kind, code)


ICMP6: Final = SoleOption.whole(
    "--icmpv6-type", Codec(_read, lambda match: write_type(match.icmp_type, match.code))
)
