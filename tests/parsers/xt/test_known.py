from __future__ import annotations

from analyzer.parsers.xt.known import MATCHES_READ, TARGETS_READ, XTABLES_TARGETS
from analyzer.parsers.xt.matches import MATCH_NAMES, MATCHES
from analyzer.parsers.xt.targets import TARGET_NAMES, TARGETS


def test_the_names_told_at_a_glance_are_those_that_are_read() -> None:
    assert MATCHES.keys() == MATCHES_READ == set(MATCH_NAMES.values())
    assert TARGETS.keys() == TARGETS_READ == set(TARGET_NAMES.values())
    assert TARGETS_READ < XTABLES_TARGETS
