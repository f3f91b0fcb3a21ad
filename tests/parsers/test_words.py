from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.errors import ParseError
from analyzer.parsers.words import Words, quoted
from tests.support.strategies.iptables_rules import HERE
from tests.support.strategies.iptables_values import comments


def texts(line: str) -> list[str]:
    words = Words(line, HERE)
    found = []
    while words.peek() is not None:
        found.append(words.take("a word").text)
    return found


@given(st.lists(comments))
def test_quoting_is_undone(parts: list[str]) -> None:
    assert texts(" ".join(quoted(part) for part in parts)) == parts


@pytest.mark.parametrize(
    ("line", "want"),
    [
        ("", []),
        ("  -j\tDROP ", ["-j", "DROP"]),
        ('"a b" c', ["a b", "c"]),
        (r'"a \"b\" \\ \'c\'"', ["a \"b\" \\ 'c'"]),
        ('""', [""]),
        ("a\\b 'c", ["a\\b", "'c"]),
        ('"\\x"', ["x"]),
        ("weave-;rGqyMIl1HN^cfDki~Z$3]6!N dst", ["weave-;rGqyMIl1HN^cfDki~Z$3]6!N", "dst"]),
    ],
)
def test_blanks_separate_and_quotes_protect(line: str, want: list[str]) -> None:
    assert texts(line) == want


@pytest.mark.parametrize(
    ("line", "start"), [('--comment "open', 10), ('"', 0), ('"a\\"', 0), ('a "b" "c', 6)]
)
def test_an_open_quote_is_refused_at_its_place(line: str, start: int) -> None:
    with pytest.raises(ParseError, match="expected a closing quote") as caught:
        Words(line, HERE)
    assert caught.value.span == (start, len(line))


def test_a_missing_word_is_told_behind_the_end() -> None:
    words = Words("-j", HERE)
    words.take("an option")
    with pytest.raises(ParseError) as caught:
        words.take("a target")
    assert (caught.value.message, caught.value.span) == ("expected a target", (2, 3))


def test_the_text_of_taken_words_keeps_quotes_and_blanks() -> None:
    words = Words('-m x  --y "a b" -j DROP', HERE)
    for _ in range(4):
        words.take("a word")
    assert words.text_since(0) == '-m x  --y "a b"'
    assert words.text_since(4) == ""
