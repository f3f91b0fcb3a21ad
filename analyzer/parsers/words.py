"""Splits a line of iptables-save into words, with the column of each.

Source: iptables, iptables/xshared.c, ``add_param_to_argv``: blanks separate, double quotes protect,
a backslash inside them escapes the next character.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NoReturn

from analyzer.errors import ParseError
from analyzer.model.diagnostics import Location
from analyzer.model.value import value

_WORD: Final = re.compile(r'(?:[^\s"]|"(?:[^"\\]|\\.)*+")++|"')
_QUOTED: Final = r'"((?:[^"\\]|\\.)*+)"'
_ESCAPED: Final = r"\\(.)"
_ONE_WORD: Final = r'[^\s"]+'
_PLAIN: Final = r"[A-Za-z0-9_-]+"


@value
class Word:
    """One argument without its quotes; `span` is in columns of the line, from 0."""

    text: str
    span: tuple[int, int]
    quoted: bool = False


class Words:
    """A cursor over the words of one line, from column `start` on.

    Raises:
        ParseError: a quote is not closed.
    """

    def __init__(self, line: str, location: Location, start: int = 0) -> None:
        self.line = line
        self.location = location
        self._words: Sequence[Word] = [self._word(m) for m in _WORD.finditer(line, start)]
        self.position = 0

    def _word(self, found: re.Match[str]) -> Word:
        text = found[0]
        if '"' not in text:
            return Word(text, found.span())
        if text == '"':
            self.fail("expected a closing quote", span=(found.start(), len(self.line)))
        if "\\" not in text:
            plain = text.replace('"', "")
        else:
            plain = re.sub(_QUOTED, lambda m: re.sub(_ESCAPED, r"\1", m[1]), text)
        return Word(plain, found.span(), quoted=True)

    def peek(self, ahead: int = 0) -> str | None:
        """Return an upcoming word without taking it; None after the last."""
        at = self.position + ahead
        return self._words[at].text if at < len(self._words) else None

    def at_negation(self) -> bool:
        """Return whether the next word is ``!``, and not a quoted string."""
        at = self.position
        if at == len(self._words):
            return False
        word = self._words[at]
        return word.text == "!" and not word.quoted

    @property
    def next_column(self) -> int:
        """The column, from 0, of the next word; after the last, the end of the line."""
        at = self.position
        return self._words[at].span[0] if at < len(self._words) else len(self.line)

    def take(self, expected: str) -> Word:
        """Take the next word, or raise a ParseError that says what was expected."""
        if self.position == len(self._words):
            self.fail(f"expected {expected}", span=(len(self.line), len(self.line) + 1))
        self.position += 1
        return self._words[self.position - 1]

    def text_since(self, position: int) -> str:
        """Return the line's text of the words taken since `position`, quotes included."""
        if position == self.position:
            return ""
        return self.line[self._words[position].span[0] : self._words[self.position - 1].span[1]]

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
