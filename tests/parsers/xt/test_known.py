from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from analyzer.parsers.xt import matches, targets
from analyzer.parsers.xt.extension import Extensions
from analyzer.parsers.xt.known import MATCHES_READ, TARGETS_READ, XTABLES_TARGETS
from analyzer.parsers.xt.matches import MATCH_NAMES, MATCHES
from analyzer.parsers.xt.targets import TARGET_NAMES, TARGETS

#: What others in the folder share.
SHARED = {"beside", "fields", "nat_range", "simple"}


def test_the_names_told_at_a_glance_are_those_that_are_read() -> None:
    assert MATCHES.keys() == MATCHES_READ == set(MATCH_NAMES.values())
    assert TARGETS.keys() == TARGETS_READ == set(TARGET_NAMES.values())
    assert TARGETS_READ < XTABLES_TARGETS


@pytest.mark.parametrize(("package", "table"), [(matches, MATCHES), (targets, TARGETS)])
def test_every_name_has_its_reader_and_every_file_its_name(
    package: ModuleType, table: Extensions
) -> None:
    assert len({id(reader) for reader in table.values()}) == len(table)
    files = {path.stem for path in Path(package.__path__[0]).glob("[!_]*.py")}
    assert files - SHARED <= {name.lower() for name in table}


def test_a_name_that_is_not_read_has_no_reader() -> None:
    assert "HMARK" not in TARGETS
    assert MATCHES.get("os") is None
