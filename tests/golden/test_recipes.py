"""The recipes of docs/recipes.md print what stands below them; `--update-golden` writes it anew."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from analyzer import cli
from tests.support.captures import FIXTURES, ROOT
from tests.support.examples import Example, examples, needs_jq

PAGE = ROOT / "docs" / "recipes.md"
EXAMPLES = examples(PAGE)
_BUILD = re.compile(r"```sh\n(.*)\n```")
_DUMPS = {"master": "two-node", "worker1": "two-node@worker1"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the examples, the dumps of both nodes, and the store that the page makes."""
    pytest.importorskip("duckdb")
    found = tmp_path_factory.mktemp("recipes")
    shutil.copytree(ROOT / "examples", found / "examples")
    (found / "dumps").mkdir()
    for node, capture in _DUMPS.items():
        dump = FIXTURES / "1.36.2-iptables-legacy" / capture / "iptables-legacy-save.txt"
        shutil.copy(dump, found / "dumps" / f"{node}.txt")
    ((line),) = _BUILD.findall(PAGE.read_text(encoding="utf-8"))
    program, *words = shlex.split(line)
    assert program == "kubeodds"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(found)
        assert cli.main([*words, "--engine", "serial"]) == 0
    return found


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_a_recipe_prints_what_stands_below_it(
    example: Example,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    update_golden: bool,
) -> None:
    needs_jq(example, there=shutil.which("jq") is not None)
    monkeypatch.chdir(folder)

    def run(words: Sequence[str]) -> str:
        capsys.readouterr()
        assert cli.main(list(words)) in {0, 1}
        return capsys.readouterr().out

    example.check(PAGE, run, update=update_golden)


def test_there_are_recipes_of_both_kinds() -> None:
    kinds = [bool(example.commands[1]) for example in EXAMPLES]
    assert min(kinds.count(True), kinds.count(False)) >= 5
