from __future__ import annotations

import pytest

from analyzer.reports.document import Column, Document, Line, Span, Style, TextTable
from analyzer.reports.unstyled import render_unstyled


def table(*rows: tuple[str, ...]) -> list[str]:
    columns = (Column("NAME"), Column("SHARE", right=True), Column("NODE"))
    return render_unstyled(Document([TextTable(columns, rows)])).splitlines()


def test_columns_stand_below_each_other_and_numbers_to_the_right() -> None:
    assert table(("ns/a", "1/2", "master"), ("ns/longer", "~1/100", "w")) == [
        "NAME        SHARE  NODE",
        "ns/a          1/2  master",
        "ns/longer  ~1/100  w",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "日本語",  # six columns
        "ab日本",
        "cafe\N{COMBINING ACUTE ACCENT}ab",
        "ก\N{THAI CHARACTER MAI HAN-AKAT}bcdef",  # a mark of combining class 0
        "abcde\N{COMBINING ENCLOSING CIRCLE}f",
    ],
)
def test_wide_characters_take_two_columns_and_marks_none(name: str) -> None:
    assert table((name, "1/2", "n"), ("sixsix", "1/2", "n"))[1:] == [
        f"{name}    1/2  n",
        "sixsix    1/2  n",
    ]


def test_a_row_that_lacks_cells_is_filled_with_empty_ones() -> None:
    assert table(("a",), ("", "1", "n"), ()) == ["NAME  SHARE  NODE", "a", "          1  n", ""]


def test_a_table_without_rows_has_its_headings() -> None:
    assert table() == ["NAME  SHARE  NODE"]


def test_pieces_of_a_line_and_of_a_cell_are_joined() -> None:
    line = Line(("a ", Span("b", Style.BAD)))
    rows = ((("x", Span("y")),),)
    shown = render_unstyled(Document([line, Line(), TextTable((Column("H"),), rows)]))
    assert shown == "a b\n\nH\nxy\n"


@pytest.mark.parametrize("text", ["a\nb", "a\x1b[31mb", "a\x07b", "a\N{RIGHT-TO-LEFT OVERRIDE}b"])
def test_a_control_character_becomes_one_sign(text: str) -> None:
    (line,) = render_unstyled(Document([Line((text,))])).splitlines()
    assert len(line) == len(text)
    assert line.replace("\n", "").isprintable()
