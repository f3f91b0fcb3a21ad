"""The examples of docs/json.md print what stands below them; `--update-golden` writes it anew."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from typing import Any

import pytest

from analyzer import cli
from tests.support.captures import ROOT
from tests.support.documents import golden_files
from tests.support.examples import Example, examples, needs_jq
from tests.support.json_reader import shares

PAGE = ROOT / "docs" / "json.md"
_CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)
(CD, *EXAMPLES) = examples(PAGE)
FOLDER = ROOT / CD.commands[0][1]


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_an_example_prints_what_stands_below_it(
    example: Example,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    update_golden: bool,
) -> None:
    needs_jq(example, there=shutil.which("jq") is not None)

    def run(words: Sequence[str]) -> str:
        monkeypatch.chdir(FOLDER)
        assert cli.main(list(words)) in {0, 1}
        text = capsys.readouterr().out
        json.loads(text)
        return text

    example.check(PAGE, run, update=update_golden)


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
