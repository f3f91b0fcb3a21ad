from __future__ import annotations

import pytest

from analyzer.errors import ParseError, suggestion
from analyzer.model.diagnostics import Location


def error(line: str, span: tuple[int, int]) -> ParseError:
    return ParseError("expected a port", location=Location("dump.txt", 41), line=line, span=span)


def test_a_caret_stands_below_what_is_wrong() -> None:
    assert str(error("-A X --dport y", (13, 14))) == (
        "dump.txt:41:14: expected a port\n    -A X --dport y\n                 ^"
    )
    assert str(error("--dport http", (8, 12))).endswith("\n            ^^^^")


def test_columns_count_from_1() -> None:
    assert error("x", (0, 1)).column == 1


def test_what_is_missing_at_the_end_has_a_caret_too() -> None:
    assert str(error("--dport", (7, 7))).endswith(f"\n    {' ' * 7}^")


@pytest.mark.parametrize("at", [0, 10, 5_000, 999_990])
def test_of_a_line_of_megabytes_the_place_of_the_fault_is_shown(at: int) -> None:
    line = "x" * at + "FAULT" + "y" * (1_000_000 - at)
    head, shown, marker = str(error(line, (at, at + 5))).split("\n")
    assert head == f"dump.txt:41:{at + 1}: expected a port"
    assert len(shown) < 200
    start = marker.index("^")
    assert shown[start : start + 5] == "FAULT"
    assert marker.count("^") == 5


def test_a_fault_of_megabytes_is_not_marked_whole() -> None:
    shown = str(error("x" * 1_000_000, (0, 1_000_000)))
    assert len(shown) < 500


@pytest.mark.parametrize(
    ("name", "known", "end"),
    [
        ("worker1", ["worker2", "master"], "; did you mean worker2?"),
        ("rk", ["worker2", "worker1", "master"], "; did you mean worker1 or worker2?"),
        ("zzz", ["b", "a"], "; there are a, b"),
        ("zzz", list("gfedcba"), "; there are a, b, c, d, e, ..."),
        ("zzz", list("edcba"), "; there are a, b, c, d, e"),
        ("zzz", [], ""),
    ],
)
def test_an_unknown_name_is_answered_with_what_there_is(
    name: str, known: list[str], end: str
) -> None:
    assert suggestion(name, known) == end


def test_the_same_name_in_other_letters_is_suggested() -> None:
    assert suggestion("LOSS", ["advise", "loss"]) == "; did you mean loss?"
