"""What the README and docs/ show was printed by the program: each console block is run anew."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from analyzer.arguments.command_line import parse
from tests.support.captures import ROOT
from tests.support.lab.running import kubeodds

#: Those of these are asked by jq, or ask a store, and have tests of their own.
_ELSEWHERE = {"json.md", "recipes.md"}
PAGES = [
    ROOT / "README.md",
    *sorted(p for p in (ROOT / "docs").glob("*.md") if p.name not in _ELSEWHERE),
]
EVERY = [*PAGES, *(ROOT / "docs" / name for name in sorted(_ELSEWHERE))]
#: Options by which a command may say no, and exit with 1.
_THRESHOLDS = {"--max-loss", "--min-survives"}
_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
#: What a measurement may print another day: numbers, and how wide they are.
_NUMBER = re.compile(r"\d[\d,.e-]*")
_BLANKS = re.compile(r" +|-{2,}")


@dataclass(frozen=True)
class Block:
    page: Path
    text: str

    def __str__(self) -> str:
        return f"{self.page.name} {self.commands[0]}"

    @property
    def commands(self) -> list[str]:
        return [line[2:] for line in self.text.splitlines() if line.startswith("$ ")]

    @property
    def measures(self) -> bool:
        return any(" lab " in command for command in self.commands)


BLOCKS = [
    Block(page, found)
    for page in PAGES
    for found in _BLOCK.findall(page.read_text(encoding="utf-8"))
]


def printed(block: Block) -> str:
    """Return the block as a shell session in a clone prints it today."""
    lines = []
    for command in block.commands:
        lines.append(f"$ {command}")
        program, *words = shlex.split(command)
        assert program == "kubeodds"
        done = kubeodds(*words, where=ROOT)
        # 1: somebody is suspect, flows are pinned, manifests fail, a plugin finds a
        # problem, or a threshold is broken.
        may_say_no = words[0] in {"suspects", "pinned", "gate", "watch"} or _THRESHOLDS & {*words}
        allowed = {0, 1} if may_say_no else {0}
        assert done.returncode in allowed, done.stdout + done.stderr
        lines.append(done.stdout.rstrip("\n"))
    return "\n".join(lines) + "\n"


def masked(text: str) -> str:
    return _BLANKS.sub(" ", _NUMBER.sub("#", text))


def check(block: Block, *, update: bool) -> None:
    now = printed(block)
    if update:
        page = block.page.read_text(encoding="utf-8")
        # The blocks of a page may be alike in their beginning.
        old = f"```console\n{block.text}```"
        assert page.count(old) == 1
        block.page.write_text(page.replace(old, f"```console\n{now}```"), encoding="utf-8")
    elif block.measures:
        assert masked(now) == masked(block.text)
    else:
        assert now == block.text


@pytest.mark.alike
@pytest.mark.parametrize("block", [b for b in BLOCKS if not b.measures], ids=str)
def test_what_a_page_shows_is_what_the_program_prints(block: Block, update_golden: bool) -> None:
    check(block, update=update_golden)


@pytest.mark.lab
@pytest.mark.alike(1)
@pytest.mark.parametrize("block", [b for b in BLOCKS if b.measures], ids=str)
def test_what_a_page_measured_is_measured_again(block: Block, update_golden: bool) -> None:
    check(block, update=update_golden)


def test_every_fenced_block_says_what_it_is() -> None:
    """So that none looks like output without being run: console, sh, or a language."""
    for page in EVERY:
        fences = re.findall(r"^```(.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert set(fences[::2]) <= {"console", "sh", "text", "python", "json", "toml", "yaml"}, page
        assert set(fences[1::2]) <= {""}, page


@pytest.mark.parametrize("page", EVERY, ids=lambda page: page.name)
def test_what_a_page_links_to_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    links += re.findall(r'(?:src|srcset)="([^"]+)"', text)
    assert [link for link in links if not (page.parent / link).exists()] == []


_SH = re.compile(r"```sh\n(.*?)```", re.DOTALL)
#: Pages each of whose commands is one of today's, also where it is only shown.
_BY_QUESTION = (
    *("tutorial", "half-of-dns-fails", "api-is-down", "which-node-may-i-drain"),
    *("what-one-master-costs", "safe-to-deploy", "recipes"),
)


@pytest.mark.parametrize("name", _BY_QUESTION)
def test_a_command_that_a_page_only_shows_has_options_that_there_are(name: str) -> None:
    text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    lines = [line for block in _SH.findall(text) for line in block.splitlines()]
    for line in lines:
        for each in re.split(r" (?:\||&&) ", line.partition(" > ")[0]):
            program, *words = shlex.split(each, comments=True)
            if program == "kubeodds":
                assert parse(words).verb
