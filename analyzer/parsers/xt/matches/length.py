"""``-m length``. Source: extensions/libxt_length.c."""

from typing import Final

from analyzer.model.iptables.matches import MatchLength
from analyzer.parsers.xt.options import SoleOption
from analyzer.parsers.xt.values import ranges

LENGTH: Final = SoleOption(
    MatchLength, "length", "--length", ranges(most=0xFFFF, expected="bytes, or a range of bytes")
)
