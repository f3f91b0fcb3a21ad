"""Console blocks of pages in which a command of ours stands alone, or has its answer read by jq."""

from __future__ import annotations

import re
import shlex
import subprocess  # noqa: TID251  # pages pipe into jq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)

#: Returns what a command of ours prints.
Run = Callable[[Sequence[str]], str]


@dataclass(frozen=True)
class Example:
    """A command of ours, what jq makes of its document where it is asked, and what is printed."""

    text: str

    def __str__(self) -> str:
        return self.typed[0][2:40]

    @property
    def typed(self) -> list[str]:
        return [line for line in self.text.splitlines() if line.startswith(("$ ", "> "))]

    @property
    def commands(self) -> tuple[list[str], list[str]]:
        first, _, second = "".join(f"{line[2:]}\n" for line in self.typed).partition(" |\n")
        return shlex.split(first), shlex.split(second)

    def printed(self, run: Run) -> str:
        """Return the block as it is printed today."""
        (program, *words), jq = self.commands
        assert program == "kubeodds"
        out = run(words)
        if jq:
            assert jq[0] == "jq"
            out = subprocess.run(  # noqa: S603  # a filter of our own page
                jq, input=out, capture_output=True, text=True, check=True
            ).stdout
        return "".join(f"{line}\n" for line in [*self.typed, *out.splitlines()])

    def check(self, page: Path, run: Run, *, update: bool) -> None:
        """Hold the block against what is printed today, or write it anew."""
        shown = self.printed(run)
        if update:
            text = page.read_text(encoding="utf-8")
            page.write_text(text.replace(self.text, shown, 1), encoding="utf-8")
        else:
            assert _plain(shown) == _plain(self.text)


def examples(page: Path) -> list[Example]:
    """Return the console blocks of a page."""
    return [Example(found) for found in _BLOCK.findall(page.read_text(encoding="utf-8"))]


def needs_jq(example: Example, there: bool) -> None:
    """Skip an example where jq is not installed."""
    if example.commands[1] and not there:
        pytest.skip("jq is not installed: apt-get install jq")


def _plain(text: str) -> str:
    """Return a text without ``.0``, which jq prints or not, by its version."""
    return re.sub(r"(?<=\d)\.0\b", "", text)
