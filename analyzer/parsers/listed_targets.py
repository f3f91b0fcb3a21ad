"""Targets as iptables lists them, translated into iptables-save's syntax.

Source: extensions/libxt_*.c and libipt_*.c, ``*_print``, as iptables 1.8.9 prints them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from analyzer.parsers.listed_matches import MASK, NUMBER
from analyzer.parsers.words import quoted

_ALL_BITS: Final = 0xFFFFFFFF
_LOG_FLAGS: Final = {
    1: "--log-tcp-sequence",
    2: "--log-tcp-options",
    4: "--log-ip-options",
    8: "--log-uid",
    32: "--log-macdecode",
}


def _range(option: str) -> Callable[[re.Match[str]], list[str]]:
    return lambda found: [option, found[1], *(f"--{word}" for word in found[2].split())]


def _mark(found: re.Match[str]) -> list[str]:
    operation, value, mask = found[1], int(found[2], 16), found[3]
    low, high = _operation(operation, value, mask)
    return ["--set-xmark", f"{low:#x}/{high:#x}"]


def _operation(operation: str, value: int, mask: str | None) -> tuple[int, int]:
    """Return value and mask of ``--set-xmark``. Source: libxt_MARK.c, ``mark_tg_print``."""
    match operation:
        case "or":
            return value, value
        case "and":
            return 0, ~value & _ALL_BITS
        case "xor":
            return value, 0
        case _:
            return value, _ALL_BITS if mask is None else int(mask, 16)


def _copied_mark(found: re.Match[str]) -> list[str]:
    mask = found[2] or f"{_ALL_BITS:#x}"
    return [f"--{found[1]}-mark", "--nfmask", mask, "--ctmask", mask]


def _log(found: re.Match[str]) -> list[str]:
    flags = int(found[1])
    words = [] if found[3] is None else ["--log-prefix", quoted(found[3])]
    words += ["--log-level", found[2]]
    return [*words, *(word for bit, word in _LOG_FLAGS.items() if flags & bit)]


def _nflog(found: re.Match[str]) -> list[str]:
    # Printed as iptables-save prints it.
    words = [] if found[1] is None else ["--nflog-prefix", found[1]]
    for name, value in (("group", found[2]), (found[3], found[4]), ("threshold", found[5])):
        words += [] if value is None else [f"--nflog-{name}", value]
    return words


def _masquerade(found: re.Match[str]) -> list[str]:
    words = [] if found[1] is None else ["--to-ports", found[1]]
    return [*words, *(f"--{word}" for word in found[2].split())]


def _set(found: re.Match[str]) -> list[str]:
    words = [f"--{found[1]}-set", found[2], found[3]]
    words += ["--exist"] if found[4] else []
    return [*words, "--timeout", found[5]] if found[5] else words


_VALUE: Final = r"(0x[0-9a-f]{1,8})(?:/(0x[0-9a-f]{1,8}))?"
_NFLOG: Final = (
    r'(?:nflog-prefix ("(?:[^"\\]|\\.)*"|[\w-]+))?(?: ?nflog-group (\d+))?'
    r"(?: ?nflog-(range|size) (\d+))?"
    r"(?: ?nflog-threshold (\d+))?"
)
_ONES: Final = r"[0-9]{1,5}"
_TO: Final = r"to:(\S*)((?: (?:random-fully|random|persistent))*)"

#: The whole text that targets print, and the words of iptables-save.
TARGETS: Final[dict[str, tuple[tuple[str, Callable[[re.Match[str]], list[str]]], ...]]] = {
    "DNAT": ((_TO, _range("--to-destination")),),
    "SNAT": ((_TO, _range("--to-source")),),
    "MASQUERADE": (
        (rf"(?:masq ports: ({_ONES}(?:-{_ONES})?))?((?: ?(?:random-fully|random))*)", _masquerade),
    ),
    "REDIRECT": ((rf"(?:redir ports ({_ONES}(?:-{_ONES})?))?((?: ?random)?)", _masquerade),),
    "REJECT": ((r"reject-with (\S+)", lambda found: ["--reject-with", found[1]]),),
    "MARK": ((rf"MARK (or|and|xor|set|xset) {_VALUE}", _mark),),
    "CONNMARK": (
        (rf"CONNMARK (or|and|xor|set|xset) {_VALUE}", _mark),
        (r"CONNMARK (save|restore)(?: mask (0x[0-9a-f]{1,8}))?", _copied_mark),
    ),
    "LOG": ((r'LOG flags (\d{1,3}) level (\d)(?: prefix "(.*)")?', _log),),
    "NFLOG": ((_NFLOG, _nflog),),
    "CT": (
        (r"CT notrack", lambda _: ["--notrack"]),
        (rf"CT zone ({_ONES})", lambda found: ["--zone", found[1]]),
        (r"NOTRACK", lambda _: ["--notrack"]),
    ),
    "NOTRACK": ((r"(?:NOTRACK)?", lambda _: []),),
    "CHECKSUM": ((r"CHECKSUM fill", lambda _: ["--checksum-fill"]),),
    "TCPMSS": (
        (r"TCPMSS clamp to PMTU", lambda _: ["--clamp-mss-to-pmtu"]),
        (rf"TCPMSS set ({_ONES})", lambda found: ["--set-mss", found[1]]),
    ),
    "TPROXY": (
        (
            rf"TPROXY redirect (\S+):({_ONES}) mark ({MASK})",
            lambda found: [
                *("--on-port", found[2], "--on-ip", found[1]),
                *("--tproxy-mark", found[3]),
            ],
        ),
    ),
    "SET": (
        (rf"(add|del)-set (\S+) ((?:src|dst)[srcdt,]*)( exist)?(?: timeout ({NUMBER}))?", _set),
    ),
}
#: Targets whose text ends the row, whatever comes before it.
AT_THE_END: Final = {name: re.compile(rf"(?:^|.* ){_TO}") for name in ("DNAT", "SNAT")}
