"""``-m mac``. Source: extensions/libxt_mac.c."""

from __future__ import annotations

import re
from typing import Final

from analyzer.model.iptables.matches import MatchMac
from analyzer.parsers.words import Words
from analyzer.parsers.xt.options import Codec, SoleOption

_ADDRESS: Final = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}")


def _read(words: Words) -> str:
    word = words.take("an Ethernet address")
    text = word.text.lower()
    if not _ADDRESS.fullmatch(text):
        words.fail("expected an Ethernet address", span=word.span)
    return text


MAC: Final = SoleOption(MatchMac, "source", "--mac-source", Codec(_read, str))
