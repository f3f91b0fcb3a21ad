"""``-m hl`` of IPv6. Source: extensions/libip6t_hl.c."""

from typing import Final

from analyzer.model.iptables.matches import MatchHl
from analyzer.parsers.xt.options import Options, negatable, plain
from analyzer.parsers.xt.values import number

_HOPS: Final = number(most=255)

HL: Final = Options(
    MatchHl,
    (
        negatable("--hl-eq", "equal", _HOPS, "--hl"),
        plain("--hl-lt", "below", _HOPS),
        plain("--hl-gt", "above", _HOPS),
    ),
)
