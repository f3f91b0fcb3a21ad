"""The picture of the README holds what the program prints, and loads nothing."""

from __future__ import annotations

import html
import re

import pytest

from release import picture
from tests.support.captures import FIXTURES, ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_TEXT = re.compile(r"<text [^>]*>([^<]+)</text>")


def svg(name: str) -> str:
    return (ROOT / picture.FOLDER / f"loss-{name}.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", picture.THEMES)
def test_the_words_of_a_picture_are_those_that_the_program_prints(name: str) -> None:
    shown = html.unescape("".join(_TEXT.findall(svg(name))))
    wanted = f"$ {picture.COMMAND}\n" + _ANSI.sub("", picture.printed())
    # Of blanks only places are left.
    assert "".join(shown.split()) == "".join(wanted.split())


@pytest.mark.parametrize("name", picture.THEMES)
def test_a_picture_loads_nothing(name: str) -> None:
    text = svg(name).replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?://|@import|@font-face|<script|<image|href", text)
    assert re.findall(r"url\((?!#)", text) == []


def test_each_picture_has_its_own_colours() -> None:
    assert svg("dark") != svg("light")


@pytest.mark.parametrize("name", picture.THEMES)
def test_the_readme_shows_each_picture(name: str) -> None:
    assert f"docs/images/loss-{name}.svg" in README


@pytest.mark.parametrize(
    ("copy", "capture"),
    [
        ("dump.txt", "1.36.2-iptables-legacy/two-node@worker1/iptables-legacy-save.txt"),
        ("objects.json", "1.36.2-iptables-legacy/two-node@worker1/objects.json"),
        ("ruleset.nft", "1.36.2-nftables/two-node@worker1/nft-list-ruleset.txt"),
    ],
)
def test_an_example_is_a_capture(copy: str, capture: str) -> None:
    assert (ROOT / "examples" / copy).read_bytes() == (FIXTURES / capture).read_bytes()
