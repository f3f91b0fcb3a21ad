from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

import pytest

from analyzer.model.nft import expressions as e
from analyzer.parsers.nft import elements
from analyzer.parsers.nft.expressions import json_reader, words_of
from analyzer.parsers.nft.expressions import write as write_expression
from analyzer.parsers.nft.extension import NotUnderstood

ADDRESS = IPv4Address("10.0.0.1")


def read(text: str) -> tuple[e.Element, ...]:
    return elements.from_text(text, words_of("", "ip"))


def element(key: e.Expression, value: e.Expression | None = None, **more: Any) -> e.Element:
    return e.Element(key=key, value=value, **more)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("10.0.0.1", element(ADDRESS)),
        ("10.0.0.1 . tcp . 80", element(e.Concat((ADDRESS, "tcp", 80)))),
        ("10.0.0.1 . 80 : goto a-chain", element(e.Concat((ADDRESS, 80)), e.Goto("a-chain"))),
        ("80 : drop", element(80, e.Drop())),
        ("0 : 10.0.0.1 . 8080", element(0, e.Concat((ADDRESS, 8080)))),
        ("1-9", element(e.Range(1, 9))),
        ("*", element(e.Wildcard())),
        ('"eth0" : 1', element("eth0", 1)),
        ("10.0.0.1 timeout 1h expires 5m", element(ADDRESS, timeout=3_600, expires=300)),
        ('10.0.0.1 comment "a, b : c"', element(ADDRESS, comment="a, b : c")),
        (
            '10.0.0.1 comment "ns/a:p" : jump c',
            element(ADDRESS, e.Jump("c"), comment="ns/a:p"),
        ),
        ("10.0.0.1 counter packets 3 bytes 180", element(ADDRESS, counter=(3, 180))),
        ("10.0.0.1 counter", element(ADDRESS, counter=(0, 0))),
        ("10.0.0.1 limit rate 10/second", element(ADDRESS, limit="rate 10/second")),
    ],
)
def test_an_element_is_a_key_and_what_it_carries(text: str, want: e.Element) -> None:
    assert read(text) == (want,)
    assert read(elements.write(want, write_expression)) == (want,)


def test_elements_are_told_apart_by_commas_outside_of_quotes() -> None:
    found = read(' 80, 81 comment "x, y",\n\t82 ')
    assert [(each.key, each.comment) for each in found] == [(80, None), (81, "x, y"), (82, None)]


@pytest.mark.parametrize(
    "text",
    [
        "10.0.0.1 colour green",
        "80 timeout soon",
        "80 timeout 1s timeout 2s",
        "80 : jump {",
        "80 : drop accept",
        "10.0.0.0/33",
        "80 : ",
        "10.0.0.1 counter packets 3",
    ],
)
def test_an_element_that_is_not_understood_is_kept_as_text(text: str) -> None:
    assert read(f"81, {text}") == (element(81), element(e.Unknown(text.strip())))


READER = json_reader("ip")


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ("10.0.0.1", element(ADDRESS)),
        ([80, {"drop": None}], element(80, e.Drop())),
        (
            [{"concat": ["10.0.0.1", 80]}, {"goto": {"target": "c"}}],
            element(e.Concat((ADDRESS, 80)), e.Goto("c")),
        ),
        ({"elem": {"val": 80, "timeout": 5, "expires": 3}}, element(80, timeout=5, expires=3)),
        ([{"elem": {"val": 80, "comment": "x"}}, 7], element(80, 7, comment="x")),
        (
            {"elem": {"val": 80, "counter": {"packets": 1, "bytes": 60}}},
            element(80, counter=(1, 60)),
        ),
        (
            {"elem": {"val": 80, "limit": {"rate": 10, "burst": 5, "per": "second"}}},
            element(80, limit="rate 10/second"),
        ),
    ],
)
def test_json_gives_the_same_elements(given: Any, want: e.Element) -> None:
    assert elements.from_json(given, READER) == want


@pytest.mark.parametrize(
    "given",
    [
        {"elem": {"val": 80, "colour": "green"}},
        {"elem": 80},
        {"elem": {"val": 80, "timeout": -1}},
        {"elem": {"val": 80, "counter": {"packets": 1}}},
        [80, {"widget": 1}],
    ],
)
def test_json_that_is_not_understood_is_kept_as_text(given: Any) -> None:
    found = elements.from_json(given, READER)
    assert found == element(e.Unknown(elements.dumped(given)))
    with pytest.raises(NotUnderstood):
        elements.strict_from_json(given, READER)


def test_what_an_element_counts_may_stand_beside_it() -> None:
    given = [{"counter": {"packets": 2, "bytes": 9}}, {"limit": {"rate": 1, "burst": 5}}]
    found = elements.with_statements(element(80), given, READER)
    assert found == element(80, counter=(2, 9), limit="rate 1/second")
    with pytest.raises(NotUnderstood):
        elements.with_statements(element(80), [{"quota": {}}], READER)
