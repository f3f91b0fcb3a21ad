"""The examples of docs/control-plane.md and docs/timeline.md print what stands below them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from analyzer import cli
from tests.support.captures import ROOT

PAGES = ("control-plane.md", "timeline.md")
_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)


@dataclass(frozen=True)
class Example:
    """A command, and what the page says that it prints; the first of a page goes to a folder."""

    page: Path
    folder: Path
    text: str

    @property
    def command(self) -> str:
        # A line that ends with a backslash goes on in the next.
        return self.text.replace("\\\n> ", "").partition("\n")[0].removeprefix("$ ")

    @property
    def typed(self) -> str:
        """The lines that a person types."""
        lines = self.text.splitlines(keepends=True)
        return "".join(line for line in lines if line.startswith(("$ ", "> ")))


def _examples(name: str) -> list[Example]:
    page = ROOT / "docs" / name
    cd, *blocks = _BLOCK.findall(page.read_text(encoding="utf-8"))
    folder = ROOT / cd.removeprefix("$ cd ").strip()
    return [Example(page, folder, text) for text in blocks]


@pytest.mark.parametrize(
    "example",
    [example for page in PAGES for example in _examples(page)],
    ids=lambda e: f"{e.page.stem}: {e.command[9:60]}",
)
def test_an_example_prints_what_stands_below_it(
    example: Example,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    update_golden: bool,
) -> None:
    monkeypatch.chdir(example.folder)
    program, *words = shlex.split(example.command)
    assert program == "kubeodds"
    assert cli.main(words) in {0, 1}
    printed = capsys.readouterr()
    shown = example.typed + printed.err + printed.out
    if update_golden:
        text = example.page.read_text(encoding="utf-8")
        example.page.write_text(text.replace(example.text, shown, 1), encoding="utf-8")
    else:
        assert shown == example.text


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_examples(page: str) -> None:
    assert len(_examples(page)) >= 2
