"""Screenshots of docs/ are those that one command makes, and each is shown."""

from __future__ import annotations

import struct

import pytest

from release import screenshots
from tests.support.captures import ROOT

_NAMES = [f"{name}-{theme}.png" for name in screenshots.PAGES for theme in screenshots.THEMES]
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def test_there_are_just_these() -> None:
    assert {path.name for path in (ROOT / screenshots.FOLDER).iterdir()} == set(_NAMES)


@pytest.mark.parametrize("name", _NAMES)
def test_a_screenshot_is_shown_and_as_large_as_its_window(name: str) -> None:
    content = (ROOT / screenshots.FOLDER / name).read_bytes()
    assert content.startswith(_SIGNATURE)
    _, height = screenshots.PAGES[name.split("-", maxsplit=1)[0]]
    assert struct.unpack(">II", content[16:24]) == (screenshots.WIDTH, height)
    assert f"screenshots/{name}" in (ROOT / "docs" / "pages.md").read_text(encoding="utf-8")
