from __future__ import annotations

from analyzer.kubeproxy.assumed import ASSUMED, no_bridge_port
from analyzer.model.diagnostics import Severity


def test_an_assumption_is_told_and_is_no_gap_in_the_dump() -> None:
    told = no_bridge_port("dump.txt")
    assert (told.severity, told.code, told.file) == (Severity.INFO, ASSUMED, "dump.txt")
    assert not told.partial
