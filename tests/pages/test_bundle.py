"""What pages carry is what its sources give, with licences of all that is in it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.pages.conftest import SOURCES
from tests.support.captures import ROOT

pytestmark = pytest.mark.packages

_KEPT = ROOT / "analyzer" / "data" / "pages"


def test_the_sources_give_the_same_bytes(built: Path) -> None:
    made = {path.name: path.read_bytes() for path in (built / "built").iterdir()}
    assert made == {path.name: path.read_bytes() for path in _KEPT.iterdir()}


def test_each_package_in_it_has_its_licence_and_is_locked() -> None:
    told = re.findall(r"^([\w@/-]+) (\d+\.\d+\.\d+)$", _text(_KEPT / "LICENSES.txt"), re.MULTILINE)
    locked = json.loads(_text(SOURCES / "package-lock.json"))["packages"]
    assert len(told) > 5
    for name, version in told:
        assert locked[f"node_modules/{name}"]["version"] == version
        assert locked[f"node_modules/{name}"]["license"] in {"ISC", "BSD-3-Clause", "MIT"}


def test_the_lock_names_no_registry() -> None:
    text = _text(SOURCES / "package-lock.json")
    assert "resolved" not in text
    assert all(each.startswith("https://") for each in re.findall(r"\w+://\S+", text))
    every = json.loads(text)["packages"]
    assert all("integrity" in each for name, each in every.items() if name)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
