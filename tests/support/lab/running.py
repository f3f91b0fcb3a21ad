"""Run the program as a user does; a lab leaves its host's network, so it needs its own process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.lab import forked

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "fixtures" / "captures"
NFT = ROOT / "fixtures" / "nft"
KUBEODDS = (sys.executable, "-m", "analyzer")


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'netns-lab'}"}


@dataclass(frozen=True)
class Case:
    """A capture, the node whose dump it is, and the other one, which dies."""

    directory: Path

    def __str__(self) -> str:
        return "/".join(self.directory.parts[-2:])

    @property
    def node(self) -> str:
        return str(json.loads((self.directory / "run.json").read_text())["node"])

    @property
    def victim(self) -> str:
        return "worker1" if self.node == "master" else "master"

    @property
    def dump(self) -> str:
        found = [*self.directory.glob("iptables-*-save.txt")]
        return str(next(iter(found), self.directory / "nft-list-ruleset.txt"))

    @property
    def given(self) -> list[str]:
        objects = str(self.directory / "objects.json")
        return [self.dump, "--objects", objects, "--node", self.node]


#: Packed captures are of versions whose flows the unpacked ones stand for.
CASES = [
    Case(path.parent)
    for path in sorted(FIXTURES.glob("*iptables*/*/run.json"))
    if [*path.parent.glob("iptables-*-save.txt")]
]
NFT_CASES = [Case(path.parent) for path in sorted(NFT.glob("*-nftables/*/run.json"))]


def case(name: str) -> Case:
    return Case(FIXTURES / name)


_SWAPPED: Final = """\
import sys
from netns_lab import cli
from netns_lab.iptables import Iptables
from analyzer.parsers.iptables_save import parse, render
def swapped(usual):
    def other(self, ruleset, *more):
        text = render(ruleset).replace(WAS, BY)
        return usual(self, parse(text, 'other'), *more)
    return other
for name in ('load', 'adopt', 'resync'):
    setattr(Iptables, name, swapped(getattr(Iptables, name)))
sys.exit(cli.main(sys.argv[1:]))
"""


def swapped(was: str, by: str) -> str:
    """Return the lab as a program that loads other rules than those of the dump it is given."""
    return f"WAS, BY = {was!r}, {by!r}\n{_SWAPPED}"


#: The lab with rules that draw otherwise.
SWAPPED: Final = swapped("0.50000000000", "0.40000000000")


def python(
    *words: str,
    where: Path = ROOT,
    prefix: Sequence[str] = (),
    extra: Mapping[str, str] | None = None,
    stdin: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run Python so that it finds what is in this repository.

    Where nothing needs another process, it is a fork of one that has loaded the lab.
    """
    told = {**environment(), **(extra or {})}
    if not prefix and stdin is None:
        return forked.python(words, where, told)
    return subprocess.run(
        [*prefix, sys.executable, *words],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=where,
        env=told,
        check=False,
    )


def kubeodds(*arguments: str, **given: Any) -> subprocess.CompletedProcess[str]:
    return python("-m", "analyzer", *arguments, **given)


def lab_run(*arguments: str) -> tuple[int, dict[str, Any], str]:
    done = kubeodds("lab", "run", *arguments, "--format", "json")
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


def judged_again(found: Mapping[str, Any], folder: Path) -> tuple[int, dict[str, Any]]:
    """Return the status of `lab judge`, and its document, for one that a run has written."""
    saved = folder / "saved.json"
    saved.write_text(json.dumps(found))
    done = kubeodds("lab", "judge", str(saved), "--format", "json")
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def in_lab(program: str, *arguments: str) -> str:
    """Run Python code that may leave the host's network, and return what it prints."""
    done = python("-c", program, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def held_to_its_plan(program: str, fate: str, dead: str, runs: int) -> None:
    """Run a real client so often, one of its kind and so many of the endpoints dead."""
    from tests.support.lab.client_programs import PROGRAMS, is_installed

    if not is_installed(PROGRAMS[program]):
        pytest.skip(f"{PROGRAMS[program].needs} is not installed")
    words = ("--program", program, "--fate", fate, "--dead", dead, "--runs", str(runs))
    done = python("-m", "tests.support.lab.client_plans", *words)
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert found["runs"] == runs
    assert done.returncode == 0, found
