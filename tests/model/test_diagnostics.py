from __future__ import annotations

from analyzer.model.diagnostics import Location


def test_a_location_is_printed_as_compilers_do() -> None:
    assert str(Location("dump.txt", 41)) == "dump.txt:41"
    assert str(Location("dump.txt", 41, "nat")) == "dump.txt:41"
