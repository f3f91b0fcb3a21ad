"""``-m nfacct``. Source: extensions/libxt_nfacct.c, which prints two blanks before the name."""

from typing import Final

from analyzer.model.iptables.matches import MatchNfacct
from analyzer.parsers.words import quoted
from analyzer.parsers.xt.options import Codec, SoleOption

NFACCT: Final = SoleOption(
    MatchNfacct,
    "name",
    "--nfacct-name",
    Codec(read=lambda words: words.take("a name").text, write=lambda name: f" {quoted(name)}"),
)
