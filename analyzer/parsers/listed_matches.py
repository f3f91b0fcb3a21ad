"""Matches as iptables lists them, translated into iptables-save's syntax.

Source: extensions/libxt_*.c and libipt_*.c, ``*_print``, as iptables 1.8.9 prints them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from analyzer.parsers.words import quoted

_FLAGS: Final = ("FIN", "SYN", "RST", "ACK", "PSH", "URG")
_FLAG_BITS: Final = {1: "FIN", 2: "SYN", 4: "RST", 8: "PSH", 16: "ACK", 32: "URG"}
NUMBER: Final = r"\d{1,20}"
_RANGE: Final = r"(?:source|destination) IP range (?:! )?[0-9a-f.:]+-[0-9a-f.:]+"
MASK: Final = r"0x[0-9a-f]{1,8}(?:/0x[0-9a-f]{1,8})?"


def _ports(found: re.Match[str]) -> list[str]:
    """Return the options of tcp, udp or sctp."""
    words = ["-m", found[1]]
    for name, negation, value in re.findall(r" ([sd])pts?:(!?)(\d+(?::\d+)?)", found[0]):
        words += [*inverted(negation), f"--{name}port", value]
    for negation, value in re.findall(r" option=(!?)(\d+)", found[0]):
        words += [*inverted(negation), "--tcp-option", value]
    for negation, mask, wanted in re.findall(r" flags:(!?)([^/ ]+)/(\S+)", found[0]):
        words += [*inverted(negation), "--tcp-flags", _flags(mask), _flags(wanted)]
    return words


def _flags(text: str) -> str:
    if not text.startswith("0x"):
        return text
    bits = int(text, 16)
    names = {name for bit, name in _FLAG_BITS.items() if bits & bit}
    # In the order in which iptables-save has them.
    return ",".join(name for name in _FLAGS if name in names) or "NONE"


def inverted(text: str | None) -> list[str]:
    """Return the word ``!`` if `text` contains it."""
    return ["!"] if text and "!" in text else []


def _comment(found: re.Match[str]) -> list[str]:
    return ["-m", "comment", "--comment", quoted(found[1])]


def _icmp(found: re.Match[str]) -> list[str]:
    name = "icmp6" if found[2] else "icmp"
    option = "--icmpv6-type" if found[2] else "--icmp-type"
    value = "any" if found[3] == "255" and name == "icmp" else found[3]
    return ["-m", name, *inverted(found[1]), option, value + (f"/{found[4]}" if found[4] else "")]


def _random(found: re.Match[str]) -> list[str]:
    words = ["-m", "statistic", "--mode", "random"]
    return [*words, *inverted(found[1]), "--probability", found[2]]


def _nth(found: re.Match[str]) -> list[str]:
    packet = found[3] or "0"
    words = ["-m", "statistic", "--mode", "nth", *inverted(found[1])]
    return [*words, "--every", found[2], "--packet", packet]


def _addrtype(found: re.Match[str]) -> list[str]:
    words = ["-m", "addrtype"]
    for side, negation, value in re.findall(r" (src|dst)-type (!?)([A-Z,]+)", found[0]):
        words += [*inverted(negation), f"--{side}-type", value]
    words += [f"--limit-iface-{side}" for side in re.findall(r" limit-(in|out)", found[0])]
    return words


def _conntrack(found: re.Match[str]) -> list[str]:
    words = ["-m", "conntrack"]
    for negation, name, value in re.findall(r"(! )?(ct\w+) (\S+)", found[0]):
        words += [*inverted(negation), f"--{name}", value]
    return words


_ACTIONS: Final = {"SET": "set", "CHECK": "rcheck", "UPDATE": "update", "REMOVE": "remove"}


def _recent(found: re.Match[str]) -> list[str]:
    words = ["-m", "recent", *inverted(found["negation"]), f"--{_ACTIONS[found['action']]}"]
    for option in ("seconds", "reap", "hitcount", "rttl", "name", "mask"):
        if found[option] is not None:
            words.append(f"--{option}")
            words += [] if option in {"reap", "rttl"} else [found[option]]
    return [*words, "--rsource" if found["side"] == "source" else "--rdest"]


def _owner(found: re.Match[str]) -> list[str]:
    words = ["-m", "owner"]
    for negation, kind, value in re.findall(
        rf"(! )?owner (?:(UID|GID) match ({NUMBER}(?:-{NUMBER})?)|socket exists)", found[0]
    ):
        option = [f"--{kind.lower()}-owner", value] if kind else ["--socket-exists"]
        words += [*inverted(negation), *option]
    return words


def _iprange(found: re.Match[str]) -> list[str]:
    words = ["-m", "iprange"]
    for side, negation, value in re.findall(r"(\w+) IP range (! )?(\S+)", found[0]):
        words += [*inverted(negation), f"--{'src' if side == 'source' else 'dst'}-range", value]
    return words


def _negated(name: str, option: str) -> Callable[[re.Match[str]], list[str]]:
    """Return the writer of a match with one option: group 1 is its negation, group 2 its value."""
    return lambda found: ["-m", name, *inverted(found[1]), option, found[2]]


def _plain(name: str) -> Callable[[re.Match[str]], list[str]]:
    """Return the writer of a match that is listed in the words of its options: group 1."""
    return lambda found: ["-m", name, *found[1].split()]


#: What matches print, and the words of iptables-save. No pattern is the beginning of another.
MATCHES: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], list[str]]], ...]] = tuple(
    (re.compile(rf"(?:{pattern})(?= |$)"), say)
    for pattern, say in (
        (r"/\* (.*?) \*/", _comment),
        (
            r"(tcp)(?: [sd]pts?:!?\d+(?::\d+)?| option=!?\d+"
            r"| flags:!?(?:0x[0-9A-Fa-f]{2}|[A-Z,]+)/(?:0x[0-9A-Fa-f]{2}|[A-Z,]+))*",
            _ports,
        ),
        (r"(udp|sctp)(?: [sd]pts?:!?\d+(?::\d+)?)*", _ports),
        (rf"(!)?(?:icmp|(ipv6-icmp))type ({NUMBER})(?: code ({NUMBER}))?", _icmp),
        (r"statistic mode random( !)? probability ([01]\.\d+)", _random),
        (rf"statistic mode nth( !)? every ({NUMBER})(?: packet ({NUMBER}))?", _nth),
        (rf"(?:mark|MARK) match ( ?! ?)?({MASK})", _negated("mark", "--mark")),
        (rf"(?:connmark|CONNMARK) match ( ?! ?| )?({MASK})", _negated("connmark", "--mark")),
        (r"ADDRTYPE match(?: (?:src|dst)-type !?[A-Z,]+)*(?: limit-(?:in|out))*", _addrtype),
        (
            r"(?:! )?ct(?:state|proto|(?:orig|repl)(?:src|dst)(?:port)?|status|expire|dir) \S+"
            r"(?: (?:! )?ct(?:state|proto|(?:orig|repl)(?:src|dst)(?:port)?|status|expire|dir)"
            r" \S+)*",
            _conntrack,
        ),
        (r"state ([A-Z,]+)", lambda found: ["-m", "state", "--state", found[1]]),
        (
            rf"(?P<negation>! )?recent: (?P<action>{'|'.join(_ACTIONS)})(?: seconds: "
            rf"(?P<seconds>{NUMBER}))?(?: (?P<reap>reap))?(?: hit_count: (?P<hitcount>{NUMBER}))?"
            r"(?: (?P<rttl>TTL-Match))? name: (?P<name>\S+) side: (?P<side>source|dest)"
            r"(?: mask: (?P<mask>[0-9a-f.:]+))?",
            _recent,
        ),
        (
            r"multiport (sports|dports|ports) {1,2}(!)?([\d,:]+)",
            lambda found: ["-m", "multiport", *inverted(found[2]), f"--{found[1]}", found[3]],
        ),
        (
            r"(! )?match-set (\S+) ((?:src|dst)(?:,(?:src|dst))*)",
            lambda found: ["-m", "set", *inverted(found[1]), "--match-set", found[2], found[3]],
        ),
        (
            r"PHYSDEV match((?:(?: !)? --physdev-(?:in|out) \S+|(?: !)? --physdev-is-\w+)+)",
            _plain("physdev"),
        ),
        (
            rf"limit: avg (\S+) burst ({NUMBER})",
            lambda found: ["-m", "limit", "--limit", found[1], "--limit-burst", found[2]],
        ),
        (
            rf"(?:! )?owner (?:[UG]ID match {NUMBER}(?:-{NUMBER})?|socket exists)"
            rf"(?: (?:! )?owner (?:[UG]ID match {NUMBER}(?:-{NUMBER})?|socket exists))*",
            _owner,
        ),
        (r"socket((?: --(?:transparent|nowildcard|restore-skmark))*)", _plain("socket")),
        (
            r"PKTTYPE (!?)= (unicast|broadcast|multicast)",
            _negated("pkttype", "--pkt-type"),
        ),
        (rf"{_RANGE}(?: {_RANGE})?", _iprange),
        (
            r"nfacct-name  (\S+)",
            lambda found: ["-m", "nfacct", "--nfacct-name", quoted(found[1])],
        ),
        (rf"length ({NUMBER}(?::{NUMBER})?)", lambda found: ["-m", "length", "--length", found[1]]),
        (
            rf"(?:TTL match TTL|HL match HL) (!?)==? ({NUMBER})",
            lambda found: (
                ["-m", "ttl", *inverted(found[1]), "--ttl-eq", found[2]]
                if found[0].startswith("TTL")
                else ["-m", "hl", *inverted(found[1]), "--hl-eq", found[2]]
            ),
        ),
        (
            r"MAC ((?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2})",
            lambda found: ["-m", "mac", "--mac-source", found[1].upper()],
        ),
        (
            r"rpfilter((?: (?:loose|validmark|accept-local|invert))*)",
            lambda found: ["-m", "rpfilter", *(f"--{word}" for word in found[1].split())],
        ),
    )
)
