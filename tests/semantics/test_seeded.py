"""The properties are worth something: a stored question of each notices each seeded fault."""

from __future__ import annotations

import pytest

from tests.support.seeded.search import notices
from tests.support.seeded.stored import read_file
from tests.support.seeded.suites import SUITES

FAULTS = [(suite.name, name) for suite in SUITES.values() for name in suite.faults]


@pytest.mark.parametrize(("suite", "name"), FAULTS)
def test_a_seeded_fault_is_noticed(suite: str, name: str) -> None:
    asked = SUITES[suite]
    text = read_file(asked.file).get(name)
    assert text is not None, "store one: python -m tests.support.seeded.search --write"
    assert not asked.is_broken_by(text), "the property does not hold, without any fault"
    assert notices(asked, name, text)


@pytest.mark.parametrize("suite", SUITES)
def test_nothing_is_stored_for_faults_that_are_gone(suite: str) -> None:
    assert set(read_file(SUITES[suite].file)) <= set(SUITES[suite].faults)


@pytest.mark.parametrize("suite", SUITES)
def test_what_is_stored_is_written_as_it_was_read(suite: str) -> None:
    asked = SUITES[suite]
    for text in read_file(asked.file).values():
        assert asked.write(asked.read(text)) == text
