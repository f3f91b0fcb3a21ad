"""Tables of options, with the parser and renderer that all extensions share.

An extension lists its options in the order in which iptables-save prints them; they are parsed in
any order and rendered in that one.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, Final, Generic, TypeVar

from analyzer.model.iptables.matches import Match, MatchNot
from analyzer.model.iptables.options import Option
from analyzer.model.value import required_fields_of, value
from analyzer.parsers.words import Words

T = TypeVar("T")


@value
class Codec(Generic[T]):
    """How the value of an option is read from its words, and printed.

    `read` raises ParseError if the words are not such a value; `takes_word` says whether it takes
    any word at all.
    """

    read: Callable[[Words], T]
    write: Callable[[T], str]
    takes_word: bool = True


#: An option without a value: present or not.
FLAG: Final[Codec[bool]] = Codec(read=lambda _: True, write=lambda _: "", takes_word=False)


@value(kw_only=True)
class Spelling:
    """One option.

    Attributes:
        text: as iptables-save prints it.
        name: the field of the extension's value.
        negatable: the field then holds an `Option`.
        also: other ways to write it.
        unless: a value that iptables-save does not print.
        read_only: another spelling of an option listed before; never printed.
    """

    text: str
    name: str
    codec: Codec[Any]
    negatable: bool = False
    also: tuple[str, ...] = ()
    unless: object = None
    read_only: bool = False


def plain(text: str, name: str, codec: Codec[Any], *also: str, unless: object = None) -> Spelling:
    """Return an option that cannot be negated."""
    return Spelling(text=text, name=name, codec=codec, also=also, unless=unless)


def negatable(text: str, name: str, codec: Codec[Any], *also: str) -> Spelling:
    """Return an option that may have ``!`` before it."""
    return Spelling(text=text, name=name, codec=codec, also=also, negatable=True)


def flag(text: str, name: str) -> Spelling:
    """Return an option that takes no value."""
    return Spelling(text=text, name=name, codec=FLAG)


class Options(Generic[T]):
    """The options of one extension, and the class of its value."""

    def __init__(self, made: type[T], spellings: tuple[Spelling, ...]) -> None:
        self._made = made
        self.spellings = spellings
        self._by_text = {s.text: s for s in spellings if s.text}
        self._by_text |= {text: s for s in spellings for text in s.also}

    def parse(self, words: Words) -> T:
        """Take this extension's options; stop before the first word that is none.

        Raises:
            ParseError: a value is malformed, or an option is missing.
        """
        found = self.fields(words)
        self._check_complete(words, found)
        return self._made(**found)

    def fields(self, words: Words) -> dict[str, Any]:
        """Take the options, and return their values by field.

        Raises:
            ParseError: a value is malformed.
        """
        found: dict[str, Any] = {}
        while True:
            negated = words.at_negation()
            text = words.peek(negated) or ""
            # A few options exist only with the ! before them.
            only_negated = self._by_text.get(f"! {text}") if negated else None
            spelling = only_negated or self._by_text.get(text)
            if spelling is None or (negated and not spelling.negatable and not only_negated):
                return found
            if negated:
                words.take("!")
            words.take("an option")
            may_follow = spelling.negatable and spelling.codec.takes_word
            if not negated and may_follow and words.at_negation():  # old style
                words.take("!")
                negated = True
            value = spelling.codec.read(words)
            found[spelling.name] = Option(value, negated) if spelling.negatable else value

    def _check_complete(self, words: Words, found: dict[str, object]) -> None:
        for name in required_fields_of(self._made):
            if name not in found:
                text = next(s.text for s in self.spellings if s.name == name)
                words.take(text)  # fails at the end of the line
                words.position -= 1
                words.fail(f"expected {text}", span=words.take(text).span)

    def render(self, value: T, without: Container[str] = ()) -> str:
        """Return the options of `value` in the order and spelling of iptables-save.

        Fields named in `without` are left to the caller.
        """
        parts: list[str] = []
        for spelling in self.spellings:
            held = getattr(value, spelling.name)
            if spelling.read_only or spelling.name in without:
                continue
            if held is None or held is False or held == spelling.unless or not spelling.text:
                continue
            inner = held.value if spelling.negatable else held
            if spelling.negatable and held.negated:
                parts.append("!")
            written = spelling.codec.write(inner)
            parts.append(f"{spelling.text} {written}" if written else spelling.text)
        return " ".join(parts)


@value
class SoleOption:
    """A match of one option: ``[!] --option value`` gives the value, or `MatchNot` of it.

    `made_of` makes the match from what the codec reads; `field` is where the match keeps it.
    """

    made_of: Callable[[Any], Match]
    field: str
    text: str
    codec: Codec[Any]

    @classmethod
    def whole(cls, text: str, codec: Codec[Any]) -> SoleOption:
        """Return the option whose codec reads and writes the match itself."""
        return cls(lambda match: match, "", text, codec)

    def parse(self, words: Words) -> Match:
        """Take the option with its value."""
        negated = words.at_negation()
        if negated:
            words.take("!")
        option = words.take(self.text)
        if option.text != self.text:
            words.fail(f"expected {self.text}", span=option.span)
        if not negated and words.at_negation():  # old style
            words.take("!")
            negated = True
        match = self.made_of(self.codec.read(words))
        return MatchNot(match) if negated else match

    def render(self, value: Match) -> str:
        """Return the option as iptables-save prints it."""
        negated = isinstance(value, MatchNot)
        inner = value.match if isinstance(value, MatchNot) else value
        held = getattr(inner, self.field) if self.field else inner
        text = f"{self.text} {self.codec.write(held)}"
        return f"! {text}" if negated else text
