"""``-m connlimit``. Source: extensions/libxt_connlimit.c, ``connlimit_save4``."""

from typing import Final

from analyzer.model.iptables.matches import MatchConnlimit
from analyzer.parsers.xt.options import Options, flag, plain
from analyzer.parsers.xt.values import number

_COUNT: Final = number(most=0xFFFFFFFF)

CONNLIMIT: Final = Options(
    MatchConnlimit,
    (
        plain("--connlimit-upto", "up_to", _COUNT),
        plain("--connlimit-above", "above", _COUNT),
        plain("--connlimit-mask", "mask", number(most=128)),
        flag("--connlimit-saddr", "source"),
        flag("--connlimit-daddr", "destination"),
    ),
)
