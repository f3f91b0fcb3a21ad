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
    MatchNot,
    MatchProtocol,
    MatchSource,
    MatchUnknown,
)

#: The words of one match, or of the target.
Group: TypeAlias = Sequence[str]

#: Most matches whose meaning is kept.
_MOST: Final = 4_096
#: ``-m comment --comment`` and the text.
_COMMENT: Final = ["-m", "comment", "--comment"]
#: The meaning of ``-m`` with its options.
_KNOWN: Final[dict[str, Match]] = {}


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
        if at > last or words[at - 1] == "!":
            return None
        if option in {"-m", "-j"} and words[start] != "!":
            at = _end(words, at, base)
            # An extension may take a ! that follows for its own.
            if at < last and (option == "-j" or words[at] == "!"):
                return None
        elif option not in {"-s", "-d", "-p"}:
            return None
        found.append(words[start:at])
    if not found or found[-1][0] != "-j" or any('"' in word for word in found[-1]):
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


def _words(text: str) -> list[str]:
    """Return the words of a row, a quoted comment with its quotes; none if others are quoted."""
    if '"' not in text:
        return text.split()
    head, *comment = text.split('"', 2)
    plain = len(comment) == 2 and head.endswith(" --comment ") and "\\" not in comment[0]  # noqa: PLR2004  # two quotes
    if not plain or '"' in comment[1] or not (comment[1][:1].isspace() or not comment[1]):
        return []
    return [*head.split(), f'"{comment[0]}"', *comment[1].split()]


def _end(words: Sequence[str], at: int, base: Collection[str]) -> int:
    """Return where the options of an extension end."""
    while at < len(words) and words[at] not in base:
        if words[at] == "!" and words[at + 1 : at + 2] and words[at + 1] in base:
            break
        at += 1
    return at
