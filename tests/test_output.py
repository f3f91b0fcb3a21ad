"""What a terminal is told about a report that was fitted to it."""

from __future__ import annotations

import re

import pytest

from tests.support.commands import Command
from tests.support.dumps import dump, two_endpoints

LONG = "ns/" + "a-name-with-many-words-" * 3 + "in-it:http"


@pytest.mark.parametrize(("name", "is_cut"), [(LONG, True), ("ns/a:http", False)])
def test_names_that_are_cut_come_with_a_way_to_see_them(
    command: Command, monkeypatch: pytest.MonkeyPatch, name: str, is_cut: bool
) -> None:
    pytest.importorskip("rich")
    monkeypatch.setenv("COLUMNS", "80")
    given = command.file("dump.txt", dump(*two_endpoints()).replace("ns/a:http", name))
    asked = "loss", given, "--dead", "10.0.0.1", "--quiet"
    shown = re.sub(r"\x1b\[[0-9;]*m", "", command(*asked, "--color", "always").out)
    says = "Names are cut at … to fit; whole in a wider terminal, or with --output FILE."
    assert (says in shown) is is_cut
    whole = command(*asked).out
    assert name in whole
    assert "cut at" not in whole
