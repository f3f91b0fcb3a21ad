from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

import pytest

from analyzer.model.nft import expressions as e
from analyzer.parsers.nft.expressions import json_reader, map_operand, words_of, write
from analyzer.parsers.nft.extension import NotUnderstood

MARK, DADDR = e.Meta("mark"), e.Payload("ip", "daddr")
META = {"meta": {"key": "mark"}}


def read(text: str) -> e.Expression:
    words = words_of(text, "ip")
    found = words.expression()
    assert words.done, words.rest()
    return found


def group(*keys: e.Expression) -> e.AnonymousSet:
    return e.AnonymousSet(tuple(e.Element(key=key) for key in keys))


def binary(operator: str, left: e.Expression, right: e.Expression) -> e.Binary:
    return e.Binary(operator, left, right)


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("ip daddr", DADDR),
        ("ip daddr . meta mark", e.Concat((DADDR, MARK))),
        # & binds closer than ^, that closer than |, shifts closest, and to the left.
        ("meta mark | 1 & 2", binary("|", MARK, binary("&", 1, 2))),
        ("meta mark & 1 | 2", binary("|", binary("&", MARK, 1), 2)),
        ("meta mark ^ 1 | 2 ^ 3", binary("|", binary("^", MARK, 1), binary("^", 2, 3))),
        ("meta mark ^ 1 & 2", binary("^", MARK, binary("&", 1, 2))),
        ("meta mark & 1 << 2", binary("&", MARK, binary("<<", 1, 2))),
        ("meta mark << 1 >> 2", binary(">>", binary("<<", MARK, 1), 2)),
        ("meta mark & (1 | 2)", binary("&", MARK, binary("|", 1, 2))),
        # Any of them binds closer than a dot.
        ("meta mark & 1 . ip daddr", e.Concat((binary("&", MARK, 1), DADDR))),
        (
            "ip daddr map { 10.0.0.1 : 1 }",
            e.MapLookup(DADDR, e.AnonymousSet((e.Element(key=IPv4Address("10.0.0.1"), value=1),))),
        ),
        ("numgen random mod 2 map @m", e.MapLookup(e.Numgen("random", 2), e.SetRef("m"))),
        ('"a b"', "a b"),
        ('"a"-"b"', e.Range("a", "b")),
        ("{ 1, 2 }", group(1, 2)),
        ("@nh,128,32", e.RawPayload("nh", 128, 32)),
    ],
)
def test_text_is_read_and_written(text: str, given: e.Expression) -> None:
    assert read(text) == given
    assert read(write(given)) == given


def test_words_of_translations_are_operators() -> None:
    assert read("meta mark and 1 or 2 xor 3") == read("meta mark & 1 | 2 ^ 3")


@pytest.mark.parametrize(
    "text",
    ["", "(1", "meta colour", "ip daddr map", "ip daddr map 1", "{", "meta mark" + " | 1" * 50],
)
def test_other_text_is_not_understood(text: str) -> None:
    with pytest.raises(NotUnderstood):
        read(text)


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ("10.0.0.1", IPv4Address("10.0.0.1")),
        (7, 7),
        (True, True),
        (["syn", "ack"], e.Flags(("syn", "ack"))),
        ({"concat": [META, 1]}, e.Concat((MARK, 1))),
        ({"prefix": {"addr": "10.0.0.0", "len": 8}}, e.Prefix(IPv4Address("10.0.0.0"), 8)),
        ({"range": [1, 9]}, e.Range(1, 9)),
        ({"set": [1, 2]}, group(1, 2)),
        ({"set": 1}, group(1)),
        ({"map": {"key": META, "data": "@m"}}, e.MapLookup(MARK, e.SetRef("m"))),
        ({"&": [META, 1]}, binary("&", MARK, 1)),
        ({"|": [META, 1, 2]}, binary("|", binary("|", MARK, 1), 2)),
    ],
)
def test_json_is_read(given: Any, want: e.Expression) -> None:
    assert json_reader("ip")(given) == want


@pytest.mark.parametrize(
    "given",
    [
        None,
        1.5,
        {},
        {"widget": 1},
        {"meta": {"key": "mark"}, "ct": {"key": "mark"}},
        {"concat": 1},
        {"prefix": {"addr": "x", "len": 8}},
        {"prefix": {"addr": "10.0.0.0", "len": 33}},
        {"prefix": {"addr": "10.0.0.0", "len": 8, "more": 1}},
        {"range": [1]},
        {"range": [1, META]},
        {"map": {"key": META, "data": 1}},
        {"&": [META]},
        {"|": [META, *[1] * 60]},
        [META],
    ],
)
def test_other_json_is_not_understood(given: Any) -> None:
    with pytest.raises(NotUnderstood):
        json_reader("ip")(given)


def test_json_nests_no_deeper_than_nft_prints() -> None:
    given: Any = 1
    for _ in range(60):
        given = {"&": [given, 1]}
    with pytest.raises(NotUnderstood, match="too deep"):
        json_reader("ip")(given)


def test_only_sets_stand_behind_map() -> None:
    for given in (e.SetRef("m"), group(1)):
        assert map_operand(given) is given
    with pytest.raises(NotUnderstood):
        map_operand("m")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (e.Range("a", "b"), '"a"-"b"'),
        (e.Range(1, 2), "1-2"),
        (e.Flags(("syn", "ack")), "syn,ack"),
        (e.Wildcard(), "*"),
        (e.Unknown("as it was"), "as it was"),
        (e.Prefix(IPv4Address("10.0.0.0"), 8), "10.0.0.0/8"),
        # Its left side binds looser than it does itself.
        (binary("&", binary("|", MARK, 1), 2), "(meta mark | 1) & 2"),
        (binary("|", MARK, binary("|", 1, 2)), "meta mark | (1 | 2)"),
        (binary("|", binary("|", MARK, 1), 2), "meta mark | 1 | 2"),
        (group(1, "x"), '{ 1, "x" }'),
    ],
)
def test_parentheses_and_quotes_stand_where_they_are_needed(given: e.Expression, text: str) -> None:
    assert write(given) == text
