"""Every row of every table of extensions has its line in the reference."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from analyzer.failure.models import MODELS
from analyzer.parsers.formats import FORMATS
from analyzer.parsers.xt.matches import MATCHES
from analyzer.parsers.xt.targets import TARGETS
from analyzer.reports.renderers import RENDERERS

REFERENCE = (Path(__file__).parents[1] / "docs/reference.md").read_text(encoding="utf-8")


def rows(section: str) -> dict[str, str]:
    """Return the first cell of each row below a heading, and the rest of the row."""
    _, _, rest = REFERENCE.partition(f"\n## {section}\n")
    body = rest.partition("\n## ")[0]
    return dict(re.findall(r"^\| `([^`]+)` \| (.*) \|$", body, re.MULTILINE))


@pytest.mark.parametrize(
    ("section", "table"),
    [
        ("Input", FORMATS),
        ("What kills endpoints", MODELS),
        ("Output", RENDERERS),
        ("Matches", MATCHES),
        ("Targets", TARGETS),
    ],
)
def test_the_reference_lists_just_what_there_is(section: str, table: dict[str, object]) -> None:
    assert rows(section).keys() == set(table)


def test_the_reference_lists_the_formats_of_each_verb() -> None:
    for verb, told in rows("Output").items():
        assert re.findall(r"`(\w+)`", told) == list(RENDERERS[verb])


def test_the_reference_lists_the_clients_of_the_lab() -> None:
    clients = pytest.importorskip("netns_lab.clients", reason="scapy is not installed")
    assert rows("Clients of `lab clients`").keys() == set(clients.CLIENTS)
