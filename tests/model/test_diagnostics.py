from __future__ import annotations

from analyzer.model.diagnostics import Location, Severity, bounded_work


def test_a_location_is_printed_as_compilers_do() -> None:
    assert str(Location("dump.txt", 41)) == "dump.txt:41"
    assert str(Location("dump.txt", 41, "nat")) == "dump.txt:41"


def test_each_bound_that_a_walk_met_leaves_a_gap_in_the_answer() -> None:
    first, second = bounded_work(["too many chains", "too many branches"], "dump.txt")
    assert (first.message, second.message) == ("too many chains", "too many branches")
    assert (first.code, first.file, first.severity) == (
        "bounded-work",
        "dump.txt",
        Severity.WARNING,
    )
    assert first.partial
    assert bounded_work([], "dump.txt") == []
