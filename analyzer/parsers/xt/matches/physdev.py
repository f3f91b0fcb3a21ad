"""``-m physdev``. Source: extensions/libxt_physdev.c, ``physdev_save``."""

from __future__ import annotations

from typing import Final

from analyzer.model.iptables.matches import MatchPhysdev
from analyzer.parsers.xt.options import FLAG, Options, negatable
from analyzer.parsers.xt.values import WORD

PHYSDEV: Final = Options(
    MatchPhysdev,
    (
        negatable("--physdev-is-in", "is_in", FLAG),
        negatable("--physdev-in", "in_device", WORD),
        negatable("--physdev-is-out", "is_out", FLAG),
        negatable("--physdev-out", "out_device", WORD),
        negatable("--physdev-is-bridged", "is_bridged", FLAG),
    ),
)
