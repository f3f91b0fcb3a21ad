"""One rule of ``iptables -nvL``, translated into iptables-save's syntax.

Theory of operation: a row has columns, followed by what each match prints, in the order of the
rule, and then what the target prints, without separators. So the text is read from the left by what
each extension can print, and must end in what the target prints, to the last character. Text that
is left over becomes a match that cannot be read. The target then keeps its name only, unless it
prints nothing (a chain, ACCEPT) or its text ends the row (``to:``).

A comment is printed as it is. If it contains ``*/`` it could look like anything, so a row with text
between two comments is not read. Neither are names that contain blanks.

Source: iptables, iptables/iptables.c, ``print_rule4``; iptables/xshared.c, ``print_rule_details``;
extensions/libxt_*.c, libipt_*.c, ``*_print``. Each form here was printed by iptables 1.8.9
(tests/lab/test_listings.py). Some forms of older versions are read too (``MARK match``, ``tcp`` for
6), but were not checked against a program that prints them.
"""

from __future__ import annotations

import re
from typing import Final

from analyzer.parsers.listed_matches import MATCHES, inverted
from analyzer.parsers.listed_targets import AT_THE_END, TARGETS
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

#: Protocol numbers, which -n prints since iptables 1.8.9, by their names in iptables-save. Source:
#: iptables, libxtables/xtables.c, ``xtables_chain_protos``; /etc/protocols.
_PROTOCOLS: Final = {
    "1": "icmp", "2": "igmp", "4": "ipencap", "6": "tcp", "17": "udp", "33": "dccp", "41": "ipv6",
    "47": "gre", "50": "esp", "51": "ah", "58": "ipv6-icmp", "132": "sctp", "136": "udplite",
    "icmpv6": "ipv6-icmp", "icmp6": "ipv6-icmp",
}  # fmt: skip
_ANY_ADDRESS: Final = frozenset({"0.0.0.0/0", "::/0", "anywhere"})
_ANY_DEVICE: Final = frozenset({"*", "any"})
_ADDRESS: Final = re.compile(r"[0-9a-f]*[.:][0-9a-f.:]*(?:/[0-9a-f.:]+)?")
_COMMENTS: Final = re.compile(r"(?:/\*(?:(?!\*/).)*\*/ ?)+(?<! )")
#: Targets that never print anything.
_WORDLESS: Final = frozenset({"", "ACCEPT", "DROP", "RETURN", "TRACE", "QUEUE", "MIRROR"})


def save_row(chain: str, line: str, *, numbered: bool) -> tuple[str, str] | None:
    """Return a row as iptables-save writes the rule, and its target; None if it is not a row.

    `numbered`: its first column is that of ``--line-numbers``.
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
    """Return the options for the columns of a row."""
    words: list[str] = []
    for column, option in (("source", "-s"), ("destination", "-d")):
        text = found[column].removeprefix("!")
        if text in _ANY_ADDRESS and text == found[column]:
            continue
        if not _ADDRESS.fullmatch(text):  # a host's name, without -n
            words += _unread(found[column])
            continue
        bits = 128 if ":" in text else 32
        words += [*inverted(found[column][0]), option, text if "/" in text else f"{text}/{bits}"]
    for column, option in (("input", "-i"), ("output", "-o")):
        if found[column] not in _ANY_DEVICE:
            words += [*inverted(found[column][0]), option, quoted(found[column].removeprefix("!"))]
    protocol = found["protocol"].removeprefix("!")
    if protocol not in {"0", "all"} or found["protocol"].startswith("!"):
        words += [*inverted(found["protocol"][0]), "-p", _PROTOCOLS.get(protocol, protocol)]
    if found["fragment"] in {"-f", "!f"}:
        words += [*inverted(found["fragment"][0]), "-f"]
    return words


def _details(target: str, leads: str, text: str) -> list[str]:
    """Return the options for `text`, which the matches and the target print."""
    words: list[str] = []
    last: list[str] = []
    at = before = 0
    if target in XTABLES_TARGETS and target not in TARGETS and target not in _WORDLESS:
        return [*(_unread(text) if text else []), leads, target, UNREAD]
    # Text between two comments may be part of one of them.
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
            # Otherwise it may be an option of the match before, which would change its meaning.
            unread = _unread(text[before:]) if text[before:] else []
            return [*words, *unread, *_target_alone(target, leads, text[at:])]
        words, before = [*words, *last], at
        last, at = found


def _next_match(text: str, at: int) -> tuple[list[str], int] | None:
    for pattern, say in MATCHES:
        found = pattern.match(text, at)
        if found is not None:
            end = found.end()
            # There is a blank between two matches, and some print another after themselves.
            while text[end : end + 1] == " ":
                end += 1
            return say(found), end
    return None


def _target(target: str, leads: str, text: str) -> list[str] | None:
    """Return the target, if `text` is exactly what it prints, else None."""
    if target in _WORDLESS or target not in XTABLES_TARGETS or leads == "-g":
        said = [leads, quoted(target)] if target else []
        return None if text else said
    for pattern, say in TARGETS.get(target, ()):
        found = re.fullmatch(pattern, text)
        if found is not None:
            name = "NOTRACK" if text == "NOTRACK" else target
            return [leads, name, *(say(found) if name == target else [])]
    return None


def _target_alone(target: str, leads: str, text: str) -> list[str]:
    """Return the target of a rule whose text cannot be read."""
    known = _target(target, leads, "")
    if known is not None and (target in _WORDLESS or target not in XTABLES_TARGETS):
        return known
    ends = AT_THE_END.get(target)
    found = None if ends is None or "/*" in text else ends.fullmatch(text)
    if found is not None:
        return [leads, target, *TARGETS[target][0][1](found)]
    return [leads, target, UNREAD]


def _unread(text: str) -> list[str]:
    return ["-m", quoted(UNREAD), quoted(text)]
