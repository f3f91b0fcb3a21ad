from __future__ import annotations

from analyzer.kubeproxy.routes.exceeded import bounded
from analyzer.model.diagnostics import Severity


def test_each_bound_that_a_walk_met_leaves_a_gap_in_the_answer() -> None:
    first, second = bounded(["too many chains", "too many branches"], "dump.txt")
    assert (first.message, second.message) == ("too many chains", "too many branches")
    assert (first.code, first.file, first.severity) == (
        "bounded-work",
        "dump.txt",
        Severity.WARNING,
    )
    assert first.partial
    assert bounded([], "dump.txt") == []
