from __future__ import annotations

import pytest

from analyzer.reports.tsv import cell


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ns/a", "ns/a"),
        ("=1+1", "'=1+1"),
        ("-x", "'-x"),
        ("+x", "'+x"),
        ("@x", "'@x"),
        ("a=b", "a=b"),
    ],
)
def test_no_cell_is_a_formula(text: str, shown: str) -> None:
    assert cell(text) == shown


def test_no_cell_holds_what_parts_cells_or_lines() -> None:
    assert set("\t\n\r\x1b") & set(cell("a\tb\nc\rd\x1b")) == set()
