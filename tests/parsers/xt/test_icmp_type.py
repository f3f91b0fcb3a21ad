from __future__ import annotations

import pytest

from analyzer.errors import ParseError
from analyzer.model.diagnostics import Location
from analyzer.parsers.words import Words
from analyzer.parsers.xt.icmp_type import read_type, write_type

NAMES = {"ping": (8, None), "port-unreachable": (3, 3), "any": (None, None)}


def read(text: str) -> tuple[int | None, int | None]:
    return read_type(Words(text, Location("dump", 1)), NAMES)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("8", (8, None)),
        ("8/0", (8, 0)),
        ("3/1", (3, 1)),
        ("255/255", (255, 255)),
        ("0x3/010", (3, 8)),
        ("ping", (8, None)),
        ("port-unreachable", (3, 3)),
        ("any", (None, None)),
    ],
)
def test_a_type_is_a_name_or_numbers(text: str, found: tuple[int | None, int | None]) -> None:
    assert read(text) == found


@pytest.mark.parametrize("text", ["256", "8/256", "8/", "/0", "pong", "", "8/0/0"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="expected an ICMP type, for example 8 or 3/1"):
        read(text)


def test_a_code_of_0_is_printed_and_none_is_not() -> None:
    assert write_type(8, 0) == "8/0"
    assert write_type(8, None) == "8"
