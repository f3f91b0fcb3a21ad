"""What the README shows was printed by the program: each console block is run and compared."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.lab.running import kubeodds

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
#: What a measurement may print another day: numbers, and how wide they are.
_NUMBER = re.compile(r"\d[\d,.e-]*")
_BLANKS = re.compile(r" +|-{2,}")


@dataclass(frozen=True)
class Block:
    text: str

    @property
    def commands(self) -> list[str]:
        return [line[2:] for line in self.text.splitlines() if line.startswith("$ ")]

    @property
    def measures(self) -> bool:
        return any(" lab " in command for command in self.commands)


BLOCKS = [Block(found) for found in _BLOCK.findall(README.read_text(encoding="utf-8"))]


def printed(block: Block) -> str:
    """Return the block as a shell session prints it today."""
    where, lines = ROOT, []
    for command in block.commands:
        lines.append(f"$ {command}")
        words = command.split()
        if words[0] == "cd":
            where = where / words[1]
            continue
        assert words[0] == "kubeodds"
        done = kubeodds(*words[1:], where=where)
        assert done.returncode == 0, done.stdout + done.stderr
        lines.append(done.stdout.rstrip("\n"))
    return "\n".join(lines) + "\n"


def masked(text: str) -> str:
    return _BLANKS.sub(" ", _NUMBER.sub("#", text))


def check(block: Block, *, update: bool) -> None:
    now = printed(block)
    if update:
        README.write_text(
            README.read_text(encoding="utf-8").replace(block.text, now), encoding="utf-8"
        )
    elif block.measures:
        assert masked(now) == masked(block.text)
    else:
        assert now == block.text


@pytest.mark.parametrize("block", [b for b in BLOCKS if not b.measures])
def test_what_the_readme_shows_is_what_the_program_prints(
    block: Block, update_golden: bool
) -> None:
    check(block, update=update_golden)


@pytest.mark.lab
@pytest.mark.parametrize("block", [b for b in BLOCKS if b.measures])
def test_what_the_readme_measured_is_measured_again(block: Block, update_golden: bool) -> None:
    check(block, update=update_golden)
