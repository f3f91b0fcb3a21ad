"""One rule of iptables-save: its words become a `Rule`, and vice versa.

Source: iptables(8); iptables/xshared.c, ``do_parse`` and ``save_rule_details``.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final

from analyzer.errors import ParseError
from analyzer.model.addresses import network_from_text, network_to_text
from analyzer.model.diagnostics import Location
from analyzer.model.iptables.matches import (
    Match,
    MatchComment,
    MatchDestination,
    MatchFragment,
    MatchInInterface,
    MatchNot,
    MatchOutInterface,
    MatchProtocol,
    MatchSource,
    MatchUnknown,
)
from analyzer.model.iptables.rules import Counters, Rule
from analyzer.model.iptables.targets import Goto, Jump, Target, TargetUnknown
from analyzer.parsers.words import Word, Words, bare, quoted
from analyzer.parsers.xt.known import XTABLES_TARGETS
from analyzer.parsers.xt.matches import MATCH_NAMES, MATCHES
from analyzer.parsers.xt.targets import TARGET_NAMES, TARGETS

_COUNTERS: Final = r"\s*\[(\d{1,20}):(\d{1,20})\]"
_APPEND: Final = (
    r"\s*(?:\[\d+:\d+\]\s*)?(?:(?:-A|--append)\s+\S+|(?:-I|--insert)\s+\S+(?:\s+\d+(?=\s|$))?)\s*"
)

#: Options that begin something new: they end the words of an extension that we cannot parse.
_LONG: Final = {
    "--protocol": "-p",
    "--proto": "-p",
    "--source": "-s",
    "--src": "-s",
    "--destination": "-d",
    "--dst": "-d",
    "--in-interface": "-i",
    "--out-interface": "-o",
    "--fragment": "-f",
    "--match": "-m",
    "--jump": "-j",
    "--goto": "-g",
    "--set-counters": "-c",
    "--ipv4": "-4",
    "--ipv6": "-6",
}
#: Represents options of a match or a target that a listing of iptables -L leaves out.
UNREAD: Final = "[not read in the listing]"
#: Printed for a target that is newer than the iptables that listed it.
OLD_BINARY: Final = r"\[unsupported revision\]|--to-destination(?=\s+--|\s*$)"
_NOT_TOLD: Final = rf"{re.escape(UNREAD)}|{OLD_BINARY}"
_BASE: Final = frozenset(_LONG.values()) | frozenset(_LONG)


_NEVER_NEGATED: Final = frozenset({"-m", "-j", "-g", "-c", "-4", "-6", "!"})


def parse_rule(line: str, location: Location, chains: Container[str]) -> Rule:
    """Read ``[n:n] -A CHAIN words``; `chains` are those that the table declares.

    Raises:
        ParseError: a word that iptables-save cannot have printed there.
    """
    if line.startswith("-A ") and line[3:4].strip():  # as most do
        start = len("-A ") + len(line[3:].split(None, 1)[0])
    else:
        found = re.match(_APPEND, line)
        if found is None:
            raise ParseError("expected -A", location=location, line=line, span=(0, len(line)))
        start = found.end()
    return _Reader(line, location, start, chains).rule()


def _is_bare(match: Match | None) -> bool:
    """Return whether a match is a comment that iptables-save prints without quotes."""
    return isinstance(match, MatchComment) and quoted(match.text) == match.text


def _joined(comment: Match | None, more: list[str]) -> MatchComment | None:
    """Return a comment with further words, whose quotes were removed, as in tests."""
    if not isinstance(comment, MatchComment) or any(word.startswith("-") for word in more):
        return None
    return MatchComment(" ".join([comment.text, *more]))


class _Reader:
    """Parses one rule; keeps what was parsed so far."""

    def __init__(self, line: str, location: Location, start: int, chains: Container[str]) -> None:
        self._words = Words(line, location, start)
        self._chains = chains
        self._matches: list[Match] = []
        self._target: Target | None = None
        self._counters: Counters | None = None
        counted = re.match(_COUNTERS, line) if "[" in line[:start] else None
        if counted is not None:
            self._counters = (int(counted[1]), int(counted[2]))

    def rule(self) -> Rule:
        words = self._words
        while words.peek() is not None:
            self._option()
        return Rule(tuple(self._matches), self._target, words.location, words.line, self._counters)

    def _option(self) -> None:
        words = self._words
        start = words.position
        negated = words.at_negation()
        if negated:
            words.take("!")
        word = words.take("an option")
        option = _LONG.get(word.text, word.text)
        if negated and option in _NEVER_NEGATED:
            words.fail("expected an option that ! can negate", span=word.span)
        match option:
            case "-p" | "-s" | "-d" | "-i" | "-o" | "-f":
                self._add(self._base(option, start, negated))
            case "-m":
                self._extension(words.take("the name of a match"), start)
            case "-j" | "-g" if self._target is not None:
                words.fail(
                    "expected no second target: were two rules run together?", span=word.span
                )
            case "-j" | "-g":
                self._take_target(option, start)
            case "-c":
                self._counters = self._count(), self._count()
            case "-4" | "-6" if self._at_end():
                pass
            case _ if word.text.startswith("--") and self._implied() is not None:
                words.position = start
                self._implicit(start)
            case _:
                # iptables-save prints no such thing, yet the rule still matches on something: it
                # stays a match that we cannot parse.
                self._stray(start, word.text)

    def _add(self, match: Match) -> None:
        self._matches.append(match)

    def _base(self, option: str, start: int, negated: bool) -> Match:
        words = self._words
        if option == "-f":
            return MatchNot(MatchFragment()) if negated else MatchFragment()
        if negated:
            return MatchNot(self._address(option, start + 1))
        if not words.at_negation():
            return self._address(option, start)
        words.take("!")  # old style: -s ! 10.0.0.0/8
        match = self._address(option, start)
        # What is not parsed keeps the ! in its text.
        return match if isinstance(match, MatchUnknown) else MatchNot(match)

    def _address(self, option: str, start: int) -> Match:
        words = self._words
        word = words.take("a value")
        match option:
            case "-p":
                return MatchProtocol(word.text.lower())
            case "-i":
                return MatchInInterface(word.text)
            case "-o":
                return MatchOutInterface(word.text)
            case _:
                network = network_from_text(word.text)
                if network is None:
                    return MatchUnknown(words.text_since(start))
                return (MatchSource if option == "-s" else MatchDestination)(network)

    def _extension(self, name: Word, start: int) -> None:
        words = self._words
        reader = MATCHES.get(name.text)
        if reader is None:
            self._unknown(start)
            return
        match: Match = reader.parse(words)
        more = self._rest()
        if more and _is_bare(match) and '"' not in words.text_since(start):
            joined = _joined(match, more)
            match = joined or MatchUnknown(words.text_since(start))
        elif more:
            # An option that our parser does not know changes the meaning of the whole match.
            match = MatchUnknown(words.text_since(start))
        self._matches.append(match)

    def _stray(self, start: int, first: str) -> None:
        """Take words that no option begins; after a comment without quotes they belong to it."""
        before = self._matches[-1] if self._matches else None
        more = [first, *self._rest()]
        joined = _joined(before, more) if _is_bare(before) else None
        if joined is None:
            self._matches.append(MatchUnknown(self._words.text_since(start)))
        else:
            self._matches[-1] = joined

    def _rest(self) -> list[str]:
        """Take all words up to the next that begins something."""
        found = []
        while not self._at_end():
            found.append(self._words.take("a word").text)
        return found

    def _implied(self) -> str | None:
        """Return the match that ``-p`` implies: ``-p tcp --dport 80``."""
        for match in reversed(self._matches):
            if isinstance(match, MatchProtocol) and match.protocol in MATCHES:
                return match.protocol
        return None

    def _implicit(self, start: int) -> None:
        words = self._words
        match: Match = MATCHES[self._implied() or ""].parse(words)
        if words.position > start and self._at_end():
            self._matches.append(match)
        else:
            self._unknown(start)

    def _at_end(self) -> bool:
        ahead = self._words.at_negation()
        word = self._words.peek(ahead)
        return word is None or word in _BASE or (ahead and word == "!")

    def _unknown(self, start: int) -> None:
        self._skip()
        self._matches.append(MatchUnknown(self._words.text_since(start)))

    def _skip(self) -> None:
        while not self._at_end():
            self._words.take("a word")

    def _take_target(self, option: str, start: int) -> None:
        words = self._words
        name = words.take("a chain or a target").text
        reader = TARGETS.get(name)
        if option == "-g":
            self._target = Goto(name)
        elif name in self._chains or (reader is None and name not in XTABLES_TARGETS):
            # A chain that is not declared stays a jump: its rules are unknown, but not its kind.
            self._target = Jump(name)
        elif reader is not None and not self._is_untold():
            self._target = reader.parse(words)
        if not self._at_end() or self._target is None:
            self._skip()
            self._target = TargetUnknown(words.text_since(start))

    def _is_untold(self) -> bool:
        """Return whether the words of a target's options say that some were not printed."""
        line = self._words.line
        may_be = "[" in line or "--to-destination" in line
        return may_be and re.search(_NOT_TOLD, line[self._words.next_column :]) is not None

    def _count(self) -> int:
        word = self._words.take("a number of packets or bytes")
        if not re.fullmatch(r"\d{1,20}", word.text):
            self._words.fail("expected a number of packets or bytes", span=word.span)
        return int(word.text)


def render_rule(chain: str, rule: Rule) -> str:
    """Return the rule as iptables-save prints it, from its values alone."""
    parts = [f"-A {chain}", *map(_render_match, rule.matches)]
    if rule.target is not None:
        parts.append(render_target(rule.target))
    return " ".join(parts)


def _render_match(match: Match) -> str:
    if isinstance(match, MatchUnknown):
        return match.text
    inner = match.match if isinstance(match, MatchNot) else match
    option = _bare_option(inner)
    if option is not None:
        return f"! {option}" if isinstance(match, MatchNot) else option
    if isinstance(inner, MatchUnknown):
        return f"! {inner.text}"
    name = MATCH_NAMES[type(inner)]
    return f"-m {name} {MATCHES[name].render(match)}".rstrip()


def _bare_option(match: Match) -> str | None:
    """Return a match that needs no ``-m``; None for others."""
    match match:
        case MatchSource(network):
            return f"-s {network_to_text(network)}"
        case MatchDestination(network):
            return f"-d {network_to_text(network)}"
        case MatchInInterface(name):
            return f"-i {bare(name)}"
        case MatchOutInterface(name):
            return f"-o {bare(name)}"
        case MatchProtocol(protocol):
            return f"-p {bare(protocol)}"
        case MatchFragment():
            return "-f"
        case _:
            return None


def render_target(target: Target) -> str:
    """Return the target with its option, ``-j`` or ``-g``, as iptables-save prints it."""
    match target:
        case Jump(chain):
            return f"-j {bare(chain)}"
        case Goto(chain):
            return f"-g {bare(chain)}"
        case TargetUnknown(text):
            return text
        case _:
            name = TARGET_NAMES[type(target)]
            return f"-j {name} {TARGETS[name].render(target)}".rstrip()
