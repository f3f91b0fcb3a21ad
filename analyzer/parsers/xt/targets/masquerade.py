"""``-j MASQUERADE``. Source: extensions/libipt_MASQUERADE.c."""

from __future__ import annotations

from typing import Final

from analyzer.model.iptables.targets import Masquerade
from analyzer.parsers.xt.options import FLAG, Options, Spelling
from analyzer.parsers.xt.values import PORT_MAX, ranges

PORT_RANGE: Final = ranges(most=PORT_MAX, separator="-", expected="a port or a range of ports")

MASQUERADE: Final = Options(
    Masquerade,
    (
        Spelling(text="--to-ports", name="ports", codec=PORT_RANGE),
        Spelling(text="--random", name="random", codec=FLAG),
        Spelling(text="--random-fully", name="random_fully", codec=FLAG),
    ),
)
