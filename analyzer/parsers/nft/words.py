"""The words of one rule, in the order in which nft prints them.

Source: nftables, src/scanner.l: a quoted string ends at the next quote; there are no escapes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from analyzer.parsers.nft.extension import NotUnderstood

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.model.nft.expressions import Expression

#: A whole ``{ ... }`` is one word: its elements are read separately.
_WORD: Final = re.compile(
    r'"[^"]*"|\{(?:[^{}"]|"[^"]*")*+\}|@(?:ll|nh|th|ih),\d+,\d+'
    r'|[(),{}]|[!=<>]=|<<|>>|[<>&|^!]|[^\s"(),<>&|^!{}]+'
)
#: A port of ``ct original proto-dst``, whose type nft does not know when it lists the rule.
INVALID_TYPE: Final = " [invalid type]"
_INVALID: Final = re.compile(rf'("[^"]*")|(0x[0-9a-f]+){re.escape(INVALID_TYPE)}')
_TIME: Final = re.compile(
    r"(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m(?!s))?(?:(\d{1,9})s)?(?:\d{1,9}ms)?"
)
_DEEPEST: Final = 40
#: Digits of a 64-bit number.
_DIGITS: Final = 20


class Words:
    """A cursor over the words of a rule.

    Attributes:
        family: of the table.
    """

    __slots__ = ("_items", "_original", "_read", "at", "depth", "family")

    def __init__(self, text: str, family: str, read: Callable[[Words, bool], Expression]) -> None:
        if text.count('"') % 2:
            raise NotUnderstood(text)
        if INVALID_TYPE in text:
            text = _INVALID.sub(r"\1\2", text)
        self._items = _WORD.findall(text)
        #: The words before any of them was replaced.
        self._original: list[str] | None = None
        self._read = read
        self.family = family
        self.at = 0
        self.depth = 0

    def inside(self, group: str) -> Words:
        """Return the words of a ``{ ... }``."""
        return Words(group[1:-1], self.family, self._read)

    @property
    def done(self) -> bool:
        """Whether no word is left."""
        return self.at >= len(self._items)

    def peek(self, ahead: int = 0) -> str:
        """Return the next word, or one further ahead; empty after the last."""
        at = self.at + ahead
        return self._items[at] if at < len(self._items) else ""

    def rest(self) -> str:
        """Take all remaining words, joined by blanks."""
        found = " ".join((self._original or self._items)[self.at :])
        self.at = len(self._items)
        return found

    def take(self) -> str:
        """Return the next word and move past it.

        Raises:
            NotUnderstood: there is none.
        """
        if self.at >= len(self._items):
            raise NotUnderstood("more words were expected")
        word: str = self._items[self.at]
        self.at += 1
        return word

    def accept(self, word: str) -> bool:
        """Move past the next word if it is this one; return whether it was."""
        if self.peek() != word:
            return False
        self.at += 1
        return True

    def expect(self, word: str) -> None:
        """Move past this word.

        Raises:
            NotUnderstood: the next word is another one.
        """
        if self.take() != word:
            raise NotUnderstood(f"expected {word}")

    def replace(self, *words: str) -> None:
        """Replace the next word by these, at most one more than the words taken so far.

        They overwrite taken words, so that no later word has to move.
        """
        if self._original is None:
            self._original = list(self._items)
        start = self.at + 1 - len(words)
        assert start >= 0  # a statement begins with a word of its own
        self._items[start : self.at + 1] = words
        self.at = start

    def number(self) -> int:
        """Take a number, decimal or hexadecimal.

        Raises:
            NotUnderstood: the next word is not a number.
        """
        found = number(self.take())
        if found is None:
            raise NotUnderstood("expected a number")
        return found

    def string(self) -> str:
        """Take a quoted string, without its quotes, or one word.

        Raises:
            NotUnderstood: the next word is neither.
        """
        word = self.take()
        if word[0] == '"':
            return word[1:-1]
        if not word[0].isalnum() and word[0] not in "_*":
            raise NotUnderstood("expected a name")
        return word

    def seconds(self) -> int:
        """Take a time such as ``1h30m``; fractions of a second are dropped.

        Raises:
            NotUnderstood: the next word is not a time.
        """
        found = seconds(self.take())
        if found is None:
            raise NotUnderstood("expected a time")
        return found

    def flags(self) -> tuple[str, ...]:
        """Take words separated by commas."""
        found = [self.string()]
        while self.accept(","):
            found.append(self.string())
        return tuple(found)

    def expression(self) -> Expression:
        """Take an expression.

        Raises:
            NotUnderstood: there is none.
        """
        return self._nested(constant=False)

    def operand(self) -> Expression:
        """Take a constant, or constants joined by operators or dots.

        Raises:
            NotUnderstood: there is none.
        """
        return self._nested(constant=True)

    def _nested(self, *, constant: bool) -> Expression:
        if self.depth > _DEEPEST:
            raise NotUnderstood("nested too deep")
        self.depth += 1
        try:
            return self._read(self, constant)
        finally:
            self.depth -= 1


def number(word: str) -> int | None:
    """Return the number that a word spells; None for other words."""
    if len(word) > _DIGITS or not word.isascii():
        return None
    if word.isdecimal():
        return int(word)
    if word.startswith("0x") and word[2:].isalnum():
        try:
            return int(word, 16)
        except ValueError:
            return None
    return None


def seconds(word: str) -> int | None:
    """Return the seconds that ``1d2h3m4s5ms`` or a plain number spells; None for other words."""
    found = _TIME.fullmatch(word)
    if found is None or not word:
        return number(word)
    days, hours, minutes, rest = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + rest


def quoted(text: str) -> str:
    """Return the text in quotes.

    Raises:
        ValueError: it contains a quote, which nft cannot write.
    """
    if '"' in text:
        raise ValueError(f"nft cannot write the string {text!r}")
    return f'"{text}"'
