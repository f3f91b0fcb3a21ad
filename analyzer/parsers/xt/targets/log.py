"""``-j LOG``. Source: extensions/libipt_LOG.c, ``LOG_save``."""

from __future__ import annotations

from typing import Final

from analyzer.model.iptables.targets import Log
from analyzer.parsers.words import Words
from analyzer.parsers.xt.options import Codec, Options, flag, plain
from analyzer.parsers.xt.values import STRING, number

_LEVELS: Final = {
    "emerg": 0,
    "panic": 0,
    "alert": 1,
    "crit": 2,
    "error": 3,
    "err": 3,
    "warning": 4,
    "warn": 4,
    "notice": 5,
    "info": 6,
    "debug": 7,
}
_NUMBER: Final = number(most=7, expected="a syslog level")
_DEFAULT: Final = 4


def _read(words: Words) -> int | None:
    named = _LEVELS.get(words.peek() or "")
    if named is None:
        level = _NUMBER.read(words)
    else:
        words.take("a level")
        level = named
    return None if level == _DEFAULT else level


LOG: Final = Options(
    Log,
    (
        plain("--log-prefix", "prefix", STRING),
        plain("--log-level", "level", Codec(_read, str)),
        flag("--log-tcp-sequence", "tcp_sequence"),
        flag("--log-tcp-options", "tcp_options"),
        flag("--log-ip-options", "ip_options"),
        flag("--log-uid", "user"),
        flag("--log-macdecode", "mac_decode"),
    ),
)
