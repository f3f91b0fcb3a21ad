from __future__ import annotations

from typing import Any

import pytest

from analyzer.errors import ParseError
from analyzer.model.diagnostics import Location
from analyzer.model.iptables.matches import Match, MatchMark, MatchNot
from analyzer.model.iptables.options import Masked, Option
from analyzer.model.value import value
from analyzer.parsers.words import Words
from analyzer.parsers.xt.options import (
    Codec,
    Options,
    SoleOption,
    Spelling,
    flag,
    negatable,
    plain,
)
from analyzer.parsers.xt.values import MASKED, STRING, number


@value(kw_only=True)
class Made:
    """Of a match that is made up."""

    size: Option[int] | None = None
    name: str | None = None
    level: int = 4
    loud: bool = False


@value(kw_only=True)
class Needing:
    """Of a match that needs an option."""

    name: str


OCTET = number(most=255)
OPTIONS = Options(
    Made,
    (
        negatable("--size", "size", OCTET, "-z"),
        plain("--name", "name", STRING),
        plain("--level", "level", OCTET, unless=4),
        flag("--loud", "loud"),
        Spelling(text="--quiet-name", name="name", codec=STRING, read_only=True),
    ),
)
SOLE = SoleOption(MatchMark, "mark", "--mark", MASKED)


def words(text: str) -> Words:
    return Words(text, Location("dump", 1))


def fails(text: str, options: Any = OPTIONS) -> str:
    with pytest.raises(ParseError) as caught:
        options.parse(words(text))
    return caught.value.message


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("", Made()),
        ("--size 1 --name a", Made(size=Option(1), name="a")),
        ("--name a --size 1", Made(size=Option(1), name="a")),
        ("! --size 1", Made(size=Option(1, negated=True))),
        # As iptables up to 1.4 wrote it.
        ("--size ! 1", Made(size=Option(1, negated=True))),
        ("-z 1", Made(size=Option(1))),
        ("--loud --level 7", Made(loud=True, level=7)),
        ("--quiet-name b", Made(name="b")),
    ],
)
def test_options_are_read_in_any_order_and_spelling(text: str, made: Made) -> None:
    given = words(text)
    assert OPTIONS.parse(given) == made
    assert given.peek() is None


@pytest.mark.parametrize("behind", ["-j ACCEPT", "! -s 10.0.0.1", "! --name a", "--other"])
def test_the_first_word_that_is_no_option_is_left(behind: str) -> None:
    given = words(f"--size 1 {behind}")
    assert OPTIONS.parse(given) == Made(size=Option(1))
    assert given.peek() == behind.split(maxsplit=1)[0]


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (Made(), ""),
        (Made(name="a", size=Option(1)), "--size 1 --name a"),
        (Made(size=Option(1, negated=True)), "! --size 1"),
        (Made(level=4), ""),
        (Made(level=0), "--level 0"),
        (Made(loud=True), "--loud"),
    ],
)
def test_options_are_printed_in_the_order_of_iptables_save(made: Made, text: str) -> None:
    assert OPTIONS.render(made) == text


def test_some_fields_may_be_left_to_the_caller() -> None:
    assert OPTIONS.render(Made(name="a", size=Option(1)), {"size"}) == "--name a"


def test_a_value_that_is_malformed_or_missing_is_told() -> None:
    assert fails("--size 256") == "expected a number from 0 to 255"
    assert fails("--size") == "expected a number from 0 to 255"


def test_an_option_that_is_needed_and_missing_is_told() -> None:
    needing = Options(Needing, (plain("--name", "name", STRING),))
    assert needing.parse(words("--name a")) == Needing(name="a")
    assert fails("", needing) == "expected --name"
    assert fails("-j ACCEPT", needing) == "expected --name"


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("--mark 0x1", MatchMark(Masked(1))),
        ("! --mark 0x1/0x3", MatchNot(MatchMark(Masked(1, 3)))),
        ("--mark ! 0x1", MatchNot(MatchMark(Masked(1)))),
    ],
)
def test_a_sole_option_may_be_negated(text: str, match: Match) -> None:
    assert SOLE.parse(words(text)) == match
    assert SOLE.render(match) == text.replace("--mark !", "! --mark")


def test_a_sole_option_may_read_the_match_itself() -> None:
    codec = Codec(lambda given: MatchMark(MASKED.read(given)), lambda made: MASKED.write(made.mark))
    whole = SoleOption.whole("--mark", codec)
    assert whole.parse(words("! --mark 0x1")) == MatchNot(MatchMark(Masked(1)))
    assert whole.render(MatchMark(Masked(1))) == "--mark 0x1"


def test_another_option_than_the_sole_one_is_told() -> None:
    assert fails("--other 1", SOLE) == fails("", SOLE) == "expected --mark"
