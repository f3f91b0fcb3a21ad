"""``-m hashlimit``. Source: extensions/libxt_hashlimit.c, ``hashlimit_mt_save``."""

from typing import Final

from analyzer.model.iptables.matches import MatchHashlimit
from analyzer.parsers.xt.options import Options, flag, plain
from analyzer.parsers.xt.values import WORD, number

_COUNT: Final = number(most=0xFFFFFFFF)
_BITS: Final = number(most=128)

HASHLIMIT: Final = Options(
    MatchHashlimit,
    (
        plain("--hashlimit-upto", "up_to", WORD, "--hashlimit"),
        plain("--hashlimit-above", "above", WORD),
        plain("--hashlimit-burst", "burst", WORD),
        plain("--hashlimit-mode", "mode", WORD),
        plain("--hashlimit-name", "name", WORD),
        plain("--hashlimit-htable-size", "table_size", _COUNT),
        plain("--hashlimit-htable-max", "table_most", _COUNT),
        plain("--hashlimit-htable-gcinterval", "collect_interval", _COUNT),
        plain("--hashlimit-htable-expire", "expire", _COUNT),
        plain("--hashlimit-srcmask", "source_mask", _BITS),
        plain("--hashlimit-dstmask", "destination_mask", _BITS),
        flag("--hashlimit-rate-match", "rate_match"),
        plain("--hashlimit-rate-interval", "rate_interval", _COUNT),
    ),
)
