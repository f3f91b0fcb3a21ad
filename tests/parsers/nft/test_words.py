from __future__ import annotations

import pytest

from analyzer.parsers.nft import words as w
from analyzer.parsers.nft.expressions import words_of
from analyzer.parsers.nft.extension import NotUnderstood
from analyzer.parsers.nft.words import Words


def words(text: str) -> Words:
    return words_of(text, "inet")


def all_of(text: str) -> list[str]:
    given, found = words(text), []
    while not given.done:
        found.append(given.take())
    return found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ip daddr 10.0.0.1 drop", ["ip", "daddr", "10.0.0.1", "drop"]),
        ('drop comment "a { b"', ["drop", "comment", '"a { b"']),
        # A whole group is one word, quotes in it included.
        ('{ 80, 443 } vmap { "}" : drop }', ["{ 80, 443 }", "vmap", '{ "}" : drop }']),
        ("meta mark&0x1!=0x0", ["meta", "mark", "&", "0x1", "!=", "0x0"]),
        ("mark<<2 >=3", ["mark", "<<", "2", ">=", "3"]),
        ("@nh,128,32 @set", ["@nh,128,32", "@set"]),
        ("syn,ack", ["syn", ",", "ack"]),
        ("1:2 (x)", ["1:2", "(", "x", ")"]),
        ("0x35 [invalid type]", ["0x35"]),
    ],
)
def test_a_rule_is_split_into_words(text: str, found: list[str]) -> None:
    assert all_of(text) == found


def test_a_quote_that_is_never_closed_is_not_understood() -> None:
    with pytest.raises(NotUnderstood):
        words('drop comment "x')


def test_words_are_looked_at_before_they_are_taken() -> None:
    given = words("a b")
    assert (given.peek(), given.peek(1), given.peek(2)) == ("a", "b", "")
    assert not given.accept("b")
    assert given.accept("a")
    given.expect("b")
    assert given.done
    with pytest.raises(NotUnderstood):
        given.take()


def test_another_word_than_the_expected_one_is_not_understood() -> None:
    with pytest.raises(NotUnderstood, match="expected b"):
        words("a").expect("b")


def test_what_is_left_is_given_as_it_stood_even_where_words_were_replaced() -> None:
    given = words("a b c d")
    given.take()
    given.take()
    given.replace("x", "y")
    assert (given.take(), given.take(), given.peek()) == ("x", "y", "d")
    given.at = 0
    assert given.rest() == "a b c d"
    assert given.done


@pytest.mark.parametrize(
    ("word", "number"),
    [
        ("80", 80),
        ("0x50", 80),
        ("080", 80),
        ("x", None),
        ("0xg", None),
        ("0x", None),
        ("0x1_0", None),
        ("1_0", None),
        ("-1", None),
        ("9" * 21, None),
        ("\u0661", None),
        ("", None),
    ],
)
def test_a_number_is_decimal_or_hexadecimal(word: str, number: int | None) -> None:
    assert w.number(word) == number


@pytest.mark.parametrize(
    ("word", "seconds"),
    [
        ("10s", 10),
        ("1h30m", 5_400),
        ("1d2h3m4s5ms", 93_784),
        ("500ms", 0),
        ("3m", 180),
        ("3ms", 0),
        ("10800", 10_800),
        ("s", None),
        ("1s1h", None),
        ("", None),
    ],
)
def test_a_time_is_in_whole_seconds(word: str, seconds: int | None) -> None:
    assert w.seconds(word) == seconds


def test_values_are_taken_or_not_understood() -> None:
    assert words("0x10").number() == 16
    assert words("1m").seconds() == 60
    assert words('"a b"').string() == "a b"
    assert words("eth*").string() == "eth*"
    assert words("random,persistent x").flags() == ("random", "persistent")
    for text in ("x", ""):
        with pytest.raises(NotUnderstood):
            words(text).number()
    with pytest.raises(NotUnderstood):
        words("soon").seconds()
    with pytest.raises(NotUnderstood):
        words("( x").string()


def test_groups_nest_no_deeper_than_nft_prints() -> None:
    given = words("(" * 30 + "80" + ")" * 30)
    assert given.operand() == 80
    with pytest.raises(NotUnderstood, match="too deep"):
        words("(" * 50 + "80" + ")" * 50).operand()


def test_a_string_with_a_quote_cannot_be_written() -> None:
    assert w.quoted("a b") == '"a b"'
    with pytest.raises(ValueError, match="cannot write"):
        w.quoted('a"b')
