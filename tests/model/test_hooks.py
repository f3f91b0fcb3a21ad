from __future__ import annotations

import pytest

from analyzer.model.hooks import PRIORITIES, TABLES


@pytest.mark.parametrize("hook", TABLES)
def test_a_hook_calls_its_tables_from_the_lowest_priority_to_the_highest(hook: str) -> None:
    called = sorted(TABLES[hook], key=lambda table: PRIORITIES[table, hook])
    assert list(TABLES[hook]) == called
    assert len({PRIORITIES[table, hook] for table in TABLES[hook]}) == len(called)


def test_sources_are_translated_last_and_destinations_before_the_filter() -> None:
    for hook in ("INPUT", "POSTROUTING"):
        assert PRIORITIES["nat", hook] == 100
    for hook in ("PREROUTING", "OUTPUT"):
        assert PRIORITIES["nat", hook] == -100
    assert PRIORITIES["filter", "OUTPUT"] == 0


def test_every_chain_that_a_hook_calls_has_a_priority_and_no_other_one() -> None:
    assert set(PRIORITIES) == {(table, hook) for hook in TABLES for table in TABLES[hook]}
