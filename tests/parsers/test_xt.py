"""Every match and target, read and written as the cases of fixtures/xt say.

A case is a line ``words ; value``, ``words ; FAIL message``, or, where iptables-save prints other
words than were read, ``words ; value ; canonical words``. The value is written as Python would,
its defaults left out. The canonical words are those of iptables-save 1.8.9.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from analyzer.errors import ParseError
from analyzer.model.diagnostics import Location
from analyzer.model.iptables import matches, options, targets
from analyzer.parsers.words import Words
from analyzer.parsers.xt.extension import Extension
from analyzer.parsers.xt.matches import MATCH_NAMES, MATCHES
from analyzer.parsers.xt.targets import TARGET_NAMES, TARGETS
from tests.support.strategies.iptables_rules import kinds_of

MATCH_CASES: Final = Path(__file__).parents[2] / "fixtures" / "xt"
TARGET_CASES: Final = MATCH_CASES / "targets"

Extensions = Mapping[str, Extension[Any]]
TABLES: Final[Mapping[Path, Extensions]] = {MATCH_CASES: MATCHES, TARGET_CASES: TARGETS}

#: What a value may be written with.
NAMES: Final = {**vars(ipaddress), **vars(options), **vars(matches), **vars(targets)}

#: Read and written by the rule itself, not by an extension.
BARE: Final = {
    *(matches.MatchProtocol, matches.MatchSource, matches.MatchDestination),
    *(matches.MatchInInterface, matches.MatchOutInterface, matches.MatchFragment),
    *(matches.MatchUnknown, matches.MatchNot),
    *(targets.Jump, targets.Goto, targets.TargetUnknown),
}


def lines() -> Iterator[Any]:
    for folder, table in TABLES.items():
        for path in sorted(folder.glob("*.t")):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if line and not line.startswith("#"):
                    name = f"{path.stem}:{number}"
                    yield pytest.param(table.get(path.stem), line.split(" ; "), id=name)


@pytest.mark.parametrize(("extension", "case"), list(lines()))
def test_words_and_value_are_as_the_fixture_says(
    extension: Extension[Any], case: list[str]
) -> None:
    given, value, canonical = case if case[2:] else (*case, case[0])
    words = Words(given, Location("t", 1))
    if value.startswith("FAIL "):
        with pytest.raises(ParseError) as caught:
            extension.parse(words)
        assert caught.value.message == value.removeprefix("FAIL ")
        return
    parsed = extension.parse(words)
    assert parsed == eval(value, dict(NAMES))  # noqa: S307  # the cases are our own
    assert words.peek() is None
    assert extension.render(parsed) == canonical


@pytest.mark.parametrize("folder", list(TABLES), ids=["matches", "targets"])
def test_every_row_has_its_fixture_and_every_fixture_its_row(folder: Path) -> None:
    assert {path.stem for path in folder.glob("*.t")} == set(TABLES[folder])


@pytest.mark.parametrize("folder", list(TABLES), ids=["matches", "targets"])
def test_every_fixture_has_a_case(folder: Path) -> None:
    cases = {path.stem: " ; " in path.read_text() for path in folder.glob("*.t")}
    assert [name for name, some in cases.items() if not some] == []


def test_every_kind_of_value_finds_the_way_back_to_its_name() -> None:
    kinds = kinds_of(matches.Match) | kinds_of(targets.Target)
    assert kinds - BARE == set(MATCH_NAMES) | set(TARGET_NAMES)
    assert set(MATCH_NAMES.values()) == set(MATCHES)
    assert set(TARGET_NAMES.values()) == set(TARGETS)


def test_an_error_points_at_the_word() -> None:
    words = Words("--mode sometimes", Location("dump", 7))
    with pytest.raises(ParseError) as caught:
        MATCHES["statistic"].parse(words)
    assert str(caught.value) == (
        "dump:7:8: expected random or nth\n    --mode sometimes\n           ^^^^^^^^^"
    )
