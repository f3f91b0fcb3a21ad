"""Options of a rule whose meaning is known from earlier rows.

The rows of kube-proxy repeat a few options, for example ``-m tcp``, or ``-m statistic`` with the
same numbers. Words of a match mean the same in each row in which they stand between two options
that no extension has, so they are parsed once. What is not as plain as that is left to the reader
of whole rules.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, TypeAlias

from analyzer.model.addresses import network_from_text
from analyzer.model.iptables.matches import (
    Match,
    MatchComment,
    MatchDestination,
    MatchInInterface,
    MatchNot,
    MatchOutInterface,
    MatchProtocol,
    MatchSource,
    MatchUnknown,
)
from analyzer.model.iptables.targets import Goto, Jump, Target, TargetUnknown

#: The words of one match, or of the target.
Group: TypeAlias = Sequence[str]

#: Options that say what a rule does.
TAKES: Final = frozenset({"-j", "-g"})
#: Options that options of an extension may follow, and those that one word follows.
_EXTENDED: Final = TAKES | {"-m"}
_MATCHED: Final = frozenset({"-s", "-d", "-p", "-i", "-o"})
#: Most matches and targets whose meaning is kept.
_MOST: Final = 4_096
#: ``-m comment --comment`` and the text.
_COMMENT: Final = ["-m", "comment", "--comment"]
#: The meaning of ``-m`` with its options.
_KNOWN: Final[dict[str, Match]] = {}
#: Likewise of ``-j`` with a target other than a chain.
_TARGETS: Final[dict[str, Target]] = {}


def groups_of(text: str, base: Collection[str]) -> list[Group] | None:
    """Return the words of each match and, as the last, those of the target.

    `base` are the options that no extension has. None: it is not certain what belongs together.
    """
    words = _words(text)
    found: list[Group] = []
    at, last = 0, len(words)
    while at < last:
        start = at
        at += words[at] == "!"
        option = words[at] if at < last else ""
        at += 2
        if at > last or words[at - 1] == "!" or words[at - 1] in base:
            return None
        if option in _EXTENDED and words[start] != "!":
            at = _end(words, at, base)
            # An extension may take a ! that follows for its own.
            if at < last and (option in TAKES or words[at] == "!"):
                return None
        elif option not in _MATCHED:
            return None
        found.append(words[start:at])
    if not found or found[-1][0] not in TAKES or any('"' in word for word in found[-1]):
        return None
    return found


def known(group: Group) -> Match | None:
    """Return the meaning of a match; None: it is not known from earlier rows."""
    if group[0] == "-m":
        if group[:-1] == _COMMENT:
            return MatchComment(group[-1].strip('"'))
        return _KNOWN.get(" ".join(group))
    if group[0] == "!":
        match = known(group[1:])
        return None if match is None else MatchNot(match)
    if group[0] == "-p":
        return MatchProtocol(group[1].lower())
    if group[0] == "-i":
        return MatchInInterface(group[1])
    if group[0] == "-o":
        return MatchOutInterface(group[1])
    network = network_from_text(group[1])
    if network is None:
        return None
    return MatchSource(network) if group[0] == "-s" else MatchDestination(network)


def learn(found: Sequence[Group], matches: Sequence[Match]) -> None:
    """Keep the meaning of the matches of a row; each group but the last is one of them."""
    if len(matches) != len(found) - 1:
        return  # an extension took an option for a value of its own
    for group, match in zip(found, matches, strict=False):
        if group[0] == "-m" and not isinstance(match, MatchUnknown) and len(_KNOWN) < _MOST:
            _KNOWN[" ".join(group)] = match


def known_target(group: Group) -> Target | None:
    """Return the meaning of a target other than a chain; None: it is not known."""
    return _TARGETS.get(" ".join(group))


def learn_target(group: Group, target: Target | None) -> None:
    """Keep the meaning of a target, unless it depends on the chains that a table declares."""
    if isinstance(target, Jump | Goto | TargetUnknown | None) or len(_TARGETS) == _MOST:
        return
    _TARGETS[" ".join(group)] = target


def _words(text: str) -> list[str]:
    """Return the words of a row, quoted comments with their quotes; none if others are quoted."""
    # Each part at an odd place was in quotes.
    parts = text.split('"')
    found: list[str] = []
    for plain, comment, after in zip(parts[:-2:2], parts[1::2], parts[2::2], strict=False):
        ends = not after or after[0].isspace()
        if not plain.endswith(" --comment ") or "\\" in comment or not ends:
            return []
        found += [*plain.split(), f'"{comment}"']
    return [*found, *parts[-1].split()] if len(parts) % 2 else []


def _end(words: Sequence[str], at: int, base: Collection[str]) -> int:
    """Return where the options of an extension end."""
    while at < len(words) and words[at] not in base:
        if words[at] == "!" and words[at + 1 : at + 2] and words[at + 1] in base:
            break
        at += 1
    return at
