"""The examples of docs/json.md print what stands below them; `--update-golden` writes it anew."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess  # noqa: TID251  # the page pipes into jq
from dataclasses import dataclass
from typing import Any

import pytest

from analyzer import cli
from tests.support.captures import ROOT
from tests.support.documents import golden_files
from tests.support.json_reader import shares

PAGE = ROOT / "docs" / "json.md"
_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
_CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)


@dataclass(frozen=True)
class Example:
    """A command of ours, what jq makes of its document, and what that prints."""

    text: str

    @property
    def typed(self) -> list[str]:
        return [line for line in self.text.splitlines() if line.startswith(("$ ", "> "))]

    @property
    def commands(self) -> tuple[list[str], list[str]]:
        first, _, second = "".join(f"{line[2:]}\n" for line in self.typed).partition(" |\n")
        return shlex.split(first), shlex.split(second)


def _blocks() -> list[Example]:
    return [Example(found) for found in _BLOCK.findall(PAGE.read_text(encoding="utf-8"))]


(CD, *EXAMPLES) = _blocks()
FOLDER = ROOT / CD.commands[0][1]


def _plain(text: str) -> str:
    """Return a text without ``.0``, which jq prints or not, by its version."""
    return re.sub(r"(?<=\d)\.0\b", "", text)


def document(
    example: Example, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> str:
    monkeypatch.chdir(FOLDER)
    program, *words = example.commands[0]
    assert program == "kubeodds"
    assert cli.main(words) in {0, 1}
    return capsys.readouterr().out


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.typed[0][2:40])
def test_an_example_prints_what_stands_below_it(
    example: Example,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    update_golden: bool,
) -> None:
    text = document(example, capsys, monkeypatch)
    json.loads(text)
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed: apt-get install jq")
    jq = example.commands[1]
    assert jq[0] == "jq"
    printed = subprocess.run(  # noqa: S603  # a filter of our own page
        jq, input=text, capture_output=True, text=True, check=True
    ).stdout
    shown = "".join(f"{line}\n" for line in [*example.typed, *printed.splitlines()])
    if update_golden:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(page.replace(example.text, shown, 1), encoding="utf-8")
    else:
        assert _plain(shown) == _plain(example.text)


def test_the_program_of_the_page_reads_every_share() -> None:
    (code,) = _CODE.findall(PAGE.read_text(encoding="utf-8"))
    scope: dict[str, Any] = {}
    exec(code, scope)  # noqa: S102  # the page's own
    read = 0
    for file in (path for path in golden_files("json") if path.stem == "services"):
        for each in json.loads(file.read_text(encoding="utf-8"))["distributions"]:
            assert scope["shares"](each) == shares(each)
            read += 1
    assert read > 10
    rest_to_none = {"values": [0.5, 0.25, None], "exact": {"draws": ["0x40000000"] * 2, "bits": 31}}
    for order in ([0, 1], [1, 0]):
        given = {**rest_to_none, "order": order}
        assert scope["shares"](given) == shares(given)


def test_each_verb_has_an_example() -> None:
    verbs = {example.commands[0][1] for example in EXAMPLES}
    assert verbs == {"services", "loss", "whatif", "trace", "tree", "diff"}
