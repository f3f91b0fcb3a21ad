"""Reading and printing gives each rule of each captured dump back, byte for byte."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from analyzer.errors import AnalyzerError
from analyzer.model.iptables.matches import MatchUnknown
from analyzer.model.iptables.targets import TargetUnknown
from analyzer.parsers.compression import decompress
from analyzer.parsers.iptables_save import render
from tests.support.reading import read_ruleset

CAPTURES: Final = Path(__file__).parents[2] / "fixtures" / "captures"
COUNTERS: Final = re.compile(r"\[\d+:\d+\] ?")
LARGEST: Final = 100


def wanted(data: bytes) -> list[str]:
    """The lines that hold something, without counters."""
    text = decompress(data).decode("utf-8", "surrogateescape")
    lines = [line for line in text.split("\n") if line and not line.startswith("#")]
    return [COUNTERS.sub("", line, count=1).rstrip() for line in lines]


def printed(data: bytes, path: Path) -> list[str]:
    text = render(read_ruleset(data, str(path)))
    return [COUNTERS.sub("", line, count=1).rstrip() for line in text.splitlines()]


def check(path: Path) -> None:
    data = path.read_bytes()
    assert printed(data, path) == wanted(data), path


DUMPS = sorted(CAPTURES.glob("*/*/ip*-save.txt"))


@pytest.mark.parametrize("path", DUMPS, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_every_fixture_is_printed_as_it_was_read(path: Path) -> None:
    check(path)


@pytest.mark.parametrize("path", DUMPS, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_every_rule_of_a_fixture_is_understood(path: Path) -> None:
    ruleset = read_ruleset(path.read_bytes(), str(path))
    strange = [
        rule.raw
        for table in ruleset.tables.values()
        for chain in table.chains.values()
        for rule in chain.rules
        if isinstance(rule.target, TargetUnknown)
        or any(isinstance(match, MatchUnknown) for match in rule.matches)
    ]
    assert strange == []
    assert ruleset.diagnostics == ()


def test_every_capture_is_printed_as_it_was_read(captures: Path) -> None:
    dumps = [
        path
        for path in sorted(captures.glob("*/*/ip*-save*.txt*"))
        if (scale := re.search(r"/scale-(\d+)", str(path))) is None or int(scale[1]) <= LARGEST
    ]
    assert dumps
    for path in dumps:
        check(path)


def test_every_public_dump_is_read_or_refused_with_its_place(corpus: Path) -> None:
    dumps = sorted(path for path in corpus.iterdir() if path.suffix == ".txt")
    assert dumps
    refusals: list[tuple[Path, str]] = []
    for path in dumps:
        try:
            ruleset = read_ruleset(path.read_bytes(), str(path))
            for table in ruleset.tables.values():
                for chain in table.chains.values():
                    list(chain.rules)
        except AnalyzerError as error:
            refusals.append((path, str(error)))
    assert all(message.startswith(str(path)) for path, message in refusals)
