"""``-m physdev``. Source: extensions/libxt_physdev.c, ``physdev_save``."""

from __future__ import annotations

from typing import Final

from analyzer.model.matches import MatchPhysdev
from analyzer.parsers.xt.options import FLAG, Options, Spelling
from analyzer.parsers.xt.values import WORD

PHYSDEV: Final = Options(
    MatchPhysdev,
    (
        Spelling(text="--physdev-is-in", name="is_in", codec=FLAG, negatable=True),
        Spelling(text="--physdev-in", name="in_device", codec=WORD, negatable=True),
        Spelling(text="--physdev-is-out", name="is_out", codec=FLAG, negatable=True),
        Spelling(text="--physdev-out", name="out_device", codec=WORD, negatable=True),
        Spelling(text="--physdev-is-bridged", name="is_bridged", codec=FLAG, negatable=True),
    ),
)
