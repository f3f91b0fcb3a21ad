"""One row of ``iptables -nvL``, said again in the words of iptables-save.

Theory of operation: a row has columns, and behind them what each match prints, in the order of the
rule, and then what the target prints. No mark stands between these. So the text is read from its
left by what each extension can print, and in the end must be what the target prints, to the last
character. What is left over is no guess: it becomes a match that nobody can read, and the target
keeps its name only, unless it prints nothing (a chain, ACCEPT) or its text ends the row (``to:``).

A comment is printed as it is. One that holds ``*/`` could spell anything, so a row in which
something stands between two comments is not read. Names that hold blanks are not read either.

Source: iptables, iptables/iptables.c, ``print_rule4``; iptables/xshared.c,
``print_rule_details``; extensions/libxt_*.c, libipt_*.c, ``*_print``. Each form here was printed by
iptables 1.8.9 (tests/lab/test_listings.py); older ones (``MARK match``, ``tcp`` for 6) are taken
from older sources.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from analyzer.parsers.words import quoted
from analyzer.parsers.xt.known import XTABLES_TARGETS
from analyzer.parsers.xt.rule import UNREAD

_COLUMNS: Final = (
    r"(?P<packets>\d+)(?P<thousands>[KMGTP]?)\s+(?P<bytes>\d+)(?P<more>[KMGTP]?) "
    r"(?:(?P<target>\S+) +| {9,})"
    r"(?P<protocol>!?(?:\d{1,3}|[a-z][a-z0-9.-]*))\s+(?:(?P<fragment>--|-f|!f)\s+)?"
    r"(?P<input>\S+)\s+(?P<output>\S+)\s+(?P<source>!?[\w.:/-]+)\s+(?P<destination>!?[\w.:/-]+)"
    r"(?:\s+(?P<rest>\S.*?))?\s*"
)
_ROW: Final = re.compile(_COLUMNS)
_NUMBERED: Final = re.compile(r"\d+\s+" + _COLUMNS)

#: Numbers of protocols, which -n prints since iptables 1.8.9, as iptables-save names them.
#: Source: iptables, libxtables/xtables.c, ``xtables_chain_protos``; /etc/protocols.
_PROTOCOLS: Final = {
    "1": "icmp", "2": "igmp", "4": "ipencap", "6": "tcp", "17": "udp", "33": "dccp", "41": "ipv6",
    "47": "gre", "50": "esp", "51": "ah", "58": "ipv6-icmp", "132": "sctp", "136": "udplite",
    "icmpv6": "ipv6-icmp", "icmp6": "ipv6-icmp",
}  # fmt: skip
_ANY_ADDRESS: Final = frozenset({"0.0.0.0/0", "::/0", "anywhere"})
_ANY_DEVICE: Final = frozenset({"*", "any"})
_ADDRESS: Final = re.compile(r"[0-9a-f]*[.:][0-9a-f.:]*(?:/[0-9a-f.:]+)?")
_COMMENTS: Final = re.compile(r"(?:/\*(?:(?!\*/).)*\*/ ?)+(?<! )")
#: Targets that print nothing, ever.
_WORDLESS: Final = frozenset({"", "ACCEPT", "DROP", "RETURN", "TRACE", "QUEUE", "MIRROR"})
_FLAGS: Final = ("FIN", "SYN", "RST", "ACK", "PSH", "URG")
_FLAG_BITS: Final = {1: "FIN", 2: "SYN", 4: "RST", 8: "PSH", 16: "ACK", 32: "URG"}
_ALL_BITS: Final = 0xFFFFFFFF
_LOG_FLAGS: Final = {
    1: "--log-tcp-sequence",
    2: "--log-tcp-options",
    4: "--log-ip-options",
    8: "--log-uid",
    32: "--log-macdecode",
}

_N: Final = r"\d{1,20}"
_RANGE: Final = r"(?:source|destination) IP range (?:! )?[0-9a-f.:]+-[0-9a-f.:]+"
_MASK: Final = r"0x[0-9a-f]{1,8}(?:/0x[0-9a-f]{1,8})?"


def _ports(found: re.Match[str]) -> list[str]:
    """Return the options of tcp, udp or sctp."""
    words = ["-m", found[1]]
    for name, negation, value in re.findall(r" ([sd])pts?:(!?)(\d+(?::\d+)?)", found[0]):
        words += [*_not(negation), f"--{name}port", value]
    for negation, value in re.findall(r" option=(!?)(\d+)", found[0]):
        words += [*_not(negation), "--tcp-option", value]
    for negation, mask, wanted in re.findall(r" flags:(!?)([^/ ]+)/(\S+)", found[0]):
        words += [*_not(negation), "--tcp-flags", _flags(mask), _flags(wanted)]
    return words


def _flags(text: str) -> str:
    if not text.startswith("0x"):
        return text
    bits = int(text, 16)
    names = {name for bit, name in _FLAG_BITS.items() if bits & bit}
    # In the order in which iptables-save has them.
    return ",".join(name for name in _FLAGS if name in names) or "NONE"


def _not(text: str | None) -> list[str]:
    return ["!"] if text and "!" in text else []


def _comment(found: re.Match[str]) -> list[str]:
    return ["-m", "comment", "--comment", quoted(found[1])]


def _icmp(found: re.Match[str]) -> list[str]:
    name = "icmp6" if found[2] else "icmp"
    option = "--icmpv6-type" if found[2] else "--icmp-type"
    value = "any" if found[3] == "255" and name == "icmp" else found[3]
    return ["-m", name, *_not(found[1]), option, value + (f"/{found[4]}" if found[4] else "")]


def _random(found: re.Match[str]) -> list[str]:
    words = ["-m", "statistic", "--mode", "random"]
    return [*words, *_not(found[1]), "--probability", found[2]]


def _nth(found: re.Match[str]) -> list[str]:
    packet = found[3] or "0"
    words = ["-m", "statistic", "--mode", "nth", *_not(found[1])]
    return [*words, "--every", found[2], "--packet", packet]


def _addrtype(found: re.Match[str]) -> list[str]:
    words = ["-m", "addrtype"]
    for side, negation, value in re.findall(r" (src|dst)-type (!?)([A-Z,]+)", found[0]):
        words += [*_not(negation), f"--{side}-type", value]
    words += [f"--limit-iface-{side}" for side in re.findall(r" limit-(in|out)", found[0])]
    return words


def _conntrack(found: re.Match[str]) -> list[str]:
    words = ["-m", "conntrack"]
    for negation, name, value in re.findall(r"(! )?(ct\w+) (\S+)", found[0]):
        words += [*_not(negation), f"--{name}", value]
    return words


_ACTIONS: Final = {"SET": "set", "CHECK": "rcheck", "UPDATE": "update", "REMOVE": "remove"}


def _recent(found: re.Match[str]) -> list[str]:
    words = ["-m", "recent", *_not(found["negation"]), f"--{_ACTIONS[found['action']]}"]
    for option in ("seconds", "reap", "hitcount", "rttl", "name", "mask"):
        if found[option] is not None:
            words.append(f"--{option}")
            words += [] if option in {"reap", "rttl"} else [found[option]]
    return [*words, "--rsource" if found["side"] == "source" else "--rdest"]


def _owner(found: re.Match[str]) -> list[str]:
    words = ["-m", "owner"]
    for negation, kind, value in re.findall(
        rf"(! )?owner (?:(UID|GID) match ({_N}(?:-{_N})?)|socket exists)", found[0]
    ):
        option = [f"--{kind.lower()}-owner", value] if kind else ["--socket-exists"]
        words += [*_not(negation), *option]
    return words


def _iprange(found: re.Match[str]) -> list[str]:
    words = ["-m", "iprange"]
    for side, negation, value in re.findall(r"(\w+) IP range (! )?(\S+)", found[0]):
        words += [*_not(negation), f"--{'src' if side == 'source' else 'dst'}-range", value]
    return words


def _negated(name: str, option: str) -> Callable[[re.Match[str]], list[str]]:
    """Return what says a match of one option: group 1 is its negation, group 2 its value."""
    return lambda found: ["-m", name, *_not(found[1]), option, found[2]]


def _plain(name: str) -> Callable[[re.Match[str]], list[str]]:
    """Return what says a match that is listed in the words of its options: group 1."""
    return lambda found: ["-m", name, *found[1].split()]


#: What matches print, and how iptables-save says it. None is the beginning of another.
_MATCHES: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], list[str]]], ...]] = tuple(
    (re.compile(rf"(?:{pattern})(?= |$)"), say)
    for pattern, say in (
        (r"/\* (.*?) \*/", _comment),
        (
            r"(tcp)(?: [sd]pts?:!?\d+(?::\d+)?| option=!?\d+"
            r"| flags:!?(?:0x[0-9A-Fa-f]{2}|[A-Z,]+)/(?:0x[0-9A-Fa-f]{2}|[A-Z,]+))*",
            _ports,
        ),
        (r"(udp|sctp)(?: [sd]pts?:!?\d+(?::\d+)?)*", _ports),
        (rf"(!)?(?:icmp|(ipv6-icmp))type ({_N})(?: code ({_N}))?", _icmp),
        (r"statistic mode random( !)? probability ([01]\.\d+)", _random),
        (rf"statistic mode nth( !)? every ({_N})(?: packet ({_N}))?", _nth),
        (rf"(?:mark|MARK) match ( ?! ?)?({_MASK})", _negated("mark", "--mark")),
        (rf"(?:connmark|CONNMARK) match ( ?! ?| )?({_MASK})", _negated("connmark", "--mark")),
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
            rf"(?P<seconds>{_N}))?(?: (?P<reap>reap))?(?: hit_count: (?P<hitcount>{_N}))?"
            r"(?: (?P<rttl>TTL-Match))? name: (?P<name>\S+) side: (?P<side>source|dest)"
            r"(?: mask: (?P<mask>[0-9a-f.:]+))?",
            _recent,
        ),
        (
            r"multiport (sports|dports|ports) {1,2}(!)?([\d,:]+)",
            lambda found: ["-m", "multiport", *_not(found[2]), f"--{found[1]}", found[3]],
        ),
        (
            r"(! )?match-set (\S+) ((?:src|dst)(?:,(?:src|dst))*)",
            lambda found: ["-m", "set", *_not(found[1]), "--match-set", found[2], found[3]],
        ),
        (
            r"PHYSDEV match((?:(?: !)? --physdev-(?:in|out) \S+|(?: !)? --physdev-is-\w+)+)",
            _plain("physdev"),
        ),
        (
            rf"limit: avg (\S+) burst ({_N})",
            lambda found: ["-m", "limit", "--limit", found[1], "--limit-burst", found[2]],
        ),
        (
            rf"(?:! )?owner (?:[UG]ID match {_N}(?:-{_N})?|socket exists)"
            rf"(?: (?:! )?owner (?:[UG]ID match {_N}(?:-{_N})?|socket exists))*",
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
        (rf"length ({_N}(?::{_N})?)", lambda found: ["-m", "length", "--length", found[1]]),
        (
            rf"(?:TTL match TTL|HL match HL) (!?)==? ({_N})",
            lambda found: (
                ["-m", "ttl", *_not(found[1]), "--ttl-eq", found[2]]
                if found[0].startswith("TTL")
                else ["-m", "hl", *_not(found[1]), "--hl-eq", found[2]]
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
    words = [] if found[1] is None else ["--nflog-prefix", quoted(found[1])]
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
    r'(?:nflog-prefix "?(.*?)"?)?(?: ?nflog-group (\d+))?(?: ?nflog-(range|size) (\d+))?'
    r"(?: ?nflog-threshold (\d+))?"
)
_ONES: Final = r"[0-9]{1,5}"
_TO: Final = r"to:(\S*)((?: (?:random-fully|random|persistent))*)"

#: What targets print, the whole of it, and how iptables-save says it.
_TARGETS: Final[dict[str, tuple[tuple[str, Callable[[re.Match[str]], list[str]]], ...]]] = {
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
            rf"TPROXY redirect (\S+):({_ONES}) mark ({_MASK})",
            lambda found: [
                *("--on-port", found[2], "--on-ip", found[1]),
                *("--tproxy-mark", found[3]),
            ],
        ),
    ),
    "SET": ((rf"(add|del)-set (\S+) ((?:src|dst)[srcdt,]*)( exist)?(?: timeout ({_N}))?", _set),),
}
#: Targets whose text ends the row, whatever stands before it.
_AT_THE_END: Final = {name: re.compile(rf"(?:^|.* ){_TO}") for name in ("DNAT", "SNAT")}


def save_row(chain: str, line: str, *, numbered: bool) -> tuple[str, str] | None:
    """Return a row as iptables-save writes the rule, and its target; None: it is no row.

    `numbered`: its first column is of ``--line-numbers``.
    """
    found = (_NUMBERED if numbered else _ROW).fullmatch(line.lstrip())
    if found is None:
        return None
    words = [f"-A {chain}"]
    if not found["thousands"] and not found["more"]:
        words.insert(0, f"[{found['packets']}:{found['bytes']}]")
    words += _columns(found)
    target, rest = found["target"] or "", found["rest"] or ""
    leads = "-j"
    if rest == "[goto]" or rest.startswith("[goto] "):
        leads, rest = "-g", rest.removeprefix("[goto]").lstrip()
    return " ".join([*words, *_details(target, leads, rest)]), target


def _columns(found: re.Match[str]) -> list[str]:
    """Return what the columns of a row ask for."""
    words: list[str] = []
    for column, option in (("source", "-s"), ("destination", "-d")):
        text = found[column].removeprefix("!")
        if text in _ANY_ADDRESS and text == found[column]:
            continue
        if not _ADDRESS.fullmatch(text):  # a host's name, without -n
            words += _unread(found[column])
            continue
        bits = 128 if ":" in text else 32
        words += [*_not(found[column][0]), option, text if "/" in text else f"{text}/{bits}"]
    for column, option in (("input", "-i"), ("output", "-o")):
        if found[column] not in _ANY_DEVICE:
            words += [*_not(found[column][0]), option, quoted(found[column].removeprefix("!"))]
    protocol = found["protocol"].removeprefix("!")
    if protocol not in {"0", "all"} or found["protocol"].startswith("!"):
        words += [*_not(found["protocol"][0]), "-p", _PROTOCOLS.get(protocol, protocol)]
    if found["fragment"] in {"-f", "!f"}:
        words += [*_not(found["fragment"][0]), "-f"]
    return words


def _details(target: str, leads: str, text: str) -> list[str]:
    """Return what matches and the target print, which is `text`."""
    words: list[str] = []
    last: list[str] = []
    at = before = 0
    if target in XTABLES_TARGETS and target not in _TARGETS and target not in _WORDLESS:
        return [*(_unread(text) if text else []), leads, target, UNREAD]
    # What stands between two comments may be a part of one.
    comments = text[text.find("/*") : text.rfind("*/") + 2] if "/*" in text else ""
    doubtful = bool(comments) and not _COMMENTS.fullmatch(comments)
    while True:
        said = _target(target, leads, text[at:])
        if said is not None:
            return [*words, *last, *said]
        found = None if doubtful else _next_match(text, at)
        if found is None:
            if last[1:2] == ["comment"] or text[at:] == "":
                words, before = [*words, *last], at
            # Else it may be an option of the match before, which that does not mean without.
            unread = _unread(text[before:]) if text[before:] else []
            return [*words, *unread, *_target_alone(target, leads, text[at:])]
        words, before = [*words, *last], at
        last, at = found


def _next_match(text: str, at: int) -> tuple[list[str], int] | None:
    for pattern, say in _MATCHES:
        found = pattern.match(text, at)
        if found is not None:
            end = found.end()
            # Between two there is a blank, and some print another behind themselves.
            while text[end : end + 1] == " ":
                end += 1
            return say(found), end
    return None


def _target(target: str, leads: str, text: str) -> list[str] | None:
    """Return the target, if `text` is all that it prints; None: it is something else."""
    if target in _WORDLESS or target not in XTABLES_TARGETS or leads == "-g":
        said = [leads, quoted(target)] if target else []
        return None if text else said
    for pattern, say in _TARGETS.get(target, ()):
        found = re.fullmatch(pattern, text)
        if found is not None:
            name = "NOTRACK" if text == "NOTRACK" else target
            return [leads, name, *(say(found) if name == target else [])]
    return None


def _target_alone(target: str, leads: str, text: str) -> list[str]:
    """Return the target of a rule whose text nobody can read."""
    known = _target(target, leads, "")
    if known is not None and (target in _WORDLESS or target not in XTABLES_TARGETS):
        return known
    ends = _AT_THE_END.get(target)
    found = None if ends is None or "/*" in text else ends.fullmatch(text)
    if found is not None:
        return [leads, target, *_TARGETS[target][0][1](found)]
    return [leads, target, UNREAD]


def _unread(text: str) -> list[str]:
    return ["-m", quoted(UNREAD), quoted(text)]
