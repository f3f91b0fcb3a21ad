"""``-m tcp``. Source: extensions/libxt_tcp.c."""

from __future__ import annotations

from typing import Final

from analyzer.model.iptables.matches import MatchTcp
from analyzer.model.iptables.options import TcpFlags
from analyzer.parsers.words import Words
from analyzer.parsers.xt.options import Codec, Options, Spelling
from analyzer.parsers.xt.values import number, port_spellings

#: In the order in which iptables-save prints them.
FLAGS: Final = ("FIN", "SYN", "RST", "PSH", "ACK", "URG")


def _flags_from_text(words: Words) -> frozenset[str]:
    expected = "TCP flags joined by commas, or ALL or NONE"
    word = words.take(expected)
    names: set[str] = set()
    for part in word.text.upper().split(","):
        if part == "ALL":
            names |= set(FLAGS)
        elif part in FLAGS:
            names.add(part)
        elif part != "NONE":
            words.fail(f"expected {expected}", span=word.span)
    return frozenset(names)


def _flags_to_text(names: frozenset[str]) -> str:
    return ",".join(f for f in FLAGS if f in names) or "NONE"


TCP_FLAGS: Final = Codec(
    read=lambda words: TcpFlags(_flags_from_text(words), _flags_from_text(words)),
    write=lambda v: f"{_flags_to_text(v.mask)} {_flags_to_text(v.flags)}",
)

#: ``--syn`` takes no value and is printed as the flags that it means.
SYN: Final = Codec(
    read=lambda _: TcpFlags(frozenset({"SYN", "RST", "ACK", "FIN"}), frozenset({"SYN"})),
    write=TCP_FLAGS.write,
)

TCP: Final = Options(
    MatchTcp,
    (
        *port_spellings(),
        Spelling(text="--tcp-option", name="tcp_option", codec=number(most=255), negatable=True),
        Spelling(text="--tcp-flags", name="flags", codec=TCP_FLAGS, negatable=True),
        Spelling(text="--syn", name="flags", codec=SYN, negatable=True, read_only=True),
    ),
)
