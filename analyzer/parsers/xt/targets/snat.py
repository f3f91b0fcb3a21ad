"""``-j SNAT``. Source: extensions/libipt_SNAT.c."""

from typing import Final

from analyzer.model.iptables.targets import Snat
from analyzer.parsers.xt.options import Options, flag, plain
from analyzer.parsers.xt.targets.nat_range import NAT_RANGE

SNAT: Final = Options(
    Snat,
    (
        plain("--to-source", "to", NAT_RANGE),
        flag("--random", "random"),
        flag("--random-fully", "random_fully"),
        flag("--persistent", "persistent"),
    ),
)
