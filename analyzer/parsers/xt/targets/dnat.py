"""``-j DNAT``. Source: extensions/libipt_DNAT.c."""

from typing import Final

from analyzer.model.iptables.targets import Dnat
from analyzer.parsers.xt.options import FLAG, Options, Spelling
from analyzer.parsers.xt.targets.nat_range import NAT_RANGE

DNAT: Final = Options(
    Dnat,
    (
        Spelling(text="--to-destination", name="to", codec=NAT_RANGE),
        Spelling(text="--random", name="random", codec=FLAG),
        Spelling(text="--persistent", name="persistent", codec=FLAG),
    ),
)
