"""``-m ttl`` of IPv4. Source: extensions/libipt_ttl.c."""

from typing import Final

from analyzer.model.iptables.matches import MatchTtl
from analyzer.parsers.xt.options import Options, negatable, plain
from analyzer.parsers.xt.values import number

_HOPS: Final = number(most=255)

TTL: Final = Options(
    MatchTtl,
    (
        negatable("--ttl-eq", "equal", _HOPS, "--ttl"),
        plain("--ttl-lt", "below", _HOPS),
        plain("--ttl-gt", "above", _HOPS),
    ),
)
