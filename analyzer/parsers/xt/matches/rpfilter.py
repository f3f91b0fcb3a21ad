"""``-m rpfilter``. Source: extensions/libxt_rpfilter.c."""

from typing import Final

from analyzer.model.iptables.matches import MatchRpfilter
from analyzer.parsers.xt.options import Options, flag

RPFILTER: Final = Options(
    MatchRpfilter,
    (
        flag("--loose", "loose"),
        flag("--validmark", "valid_mark"),
        flag("--accept-local", "accept_local"),
        flag("--invert", "invert"),
    ),
)
