"""Splits a line of iptables-save into words, with the column of each.

Source: iptables, iptables/xshared.c, ``add_param_to_argv``: blanks separate, double quotes protect,
a backslash inside them escapes the next character.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Final, NoReturn

from analyzer.errors import ParseError
from analyzer.model.diagnostics import Location

_WORD: Final = re.compile(r'(?:[^\s"]|"(?:[^"\\]|\\.)*+")++|"')
_QUOTED: Final = r'"((?:[^"\\]|\\.)*+)"'
_ESCAPED: Final = r"\\(.)"
_ONE_WORD: Final = r'[^\s"]+'
_PLAIN: Final = r"[A-Za-z0-9_-]+"


class Word:
    """One argument: its text without quotes, and where it is."""

    __slots__ = ("_at", "_words", "text")

    def __init__(self, text: str, words: Words, at: int) -> None:
        self.text = text
        self._words = words
        self._at = at

    @property
    def span(self) -> tuple[int, int]:
        """Where it begins and ends, in columns of the line, from 0."""
        return self._words.spans[self._at]


class Words:
    """A cursor over the words of one line, from column `start` on.

    Raises:
        ParseError: a quote is not closed.
    """

    def __init__(self, line: str, location: Location, start: int = 0) -> None:
        self.line = line
        self.location = location
        self.position = 0
        self._start = start
        self._texts: list[str] = _WORD.findall(line, start)
        self._count = len(self._texts)
        self._quoted: set[int] = set()
        if '"' in line:
            for at, text in enumerate(self._texts):
                if '"' in text:
                    self._quoted.add(at)
                    self._texts[at] = self._unquoted(at, text)

    @cached_property
    def spans(self) -> Sequence[tuple[int, int]]:
        """Where each word begins and ends, in columns of the line, from 0."""
        return [found.span() for found in _WORD.finditer(self.line, self._start)]

    def _unquoted(self, at: int, text: str) -> str:
        if text == '"':
            self.fail("expected a closing quote", span=(self.spans[at][0], len(self.line)))
        if "\\" not in text:
            return text.replace('"', "")
        return re.sub(_QUOTED, lambda m: re.sub(_ESCAPED, r"\1", m[1]), text)

    def peek(self, ahead: int = 0) -> str | None:
        """Return an upcoming word without taking it; None after the last."""
        at = self.position + ahead
        return self._texts[at] if at < self._count else None

    def at_negation(self) -> bool:
        """Return whether the next word is ``!``, and not a quoted string."""
        at = self.position
        return at < self._count and self._texts[at] == "!" and at not in self._quoted

    @property
    def next_column(self) -> int:
        """The column, from 0, of the next word; after the last, the end of the line."""
        at = self.position
        return self.spans[at][0] if at < self._count else len(self.line)

    def take(self, expected: str) -> Word:
        """Take the next word, or raise a ParseError that says what was expected."""
        at = self.position
        if at == self._count:
            self.fail(f"expected {expected}", span=(len(self.line), len(self.line) + 1))
        self.position = at + 1
        return Word(self._texts[at], self, at)

    def text_since(self, position: int) -> str:
        """Return the line's text of the words taken since `position`, quotes included."""
        if position == self.position:
            return ""
        return self.line[self.spans[position][0] : self.spans[self.position - 1][1]]

    def fail(self, message: str, *, span: tuple[int, int]) -> NoReturn:
        """Raise a ParseError about part of this line."""
        raise ParseError(message, location=self.location, line=self.line, span=span)


def quoted(text: str) -> str:
    """Return `text` as iptables-save prints a string.

    Source: iptables, libxtables/xtables.c, ``xtables_save_string``.
    """
    return text if re.fullmatch(_PLAIN, text) else always_quoted(text)


def bare(text: str) -> str:
    """Return a word that iptables-save never quotes, quoted only if it would be split."""
    return text if re.fullmatch(_ONE_WORD, text) and text != "!" else always_quoted(text)


def always_quoted(text: str) -> str:
    """Return `text` in quotes, with quotes and backslashes escaped."""
    return '"' + re.sub(r"([\\\"'])", r"\\\1", text) + '"'
