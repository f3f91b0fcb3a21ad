"""The Containerfile, without an engine: what it copies is there, and enough to work on."""

from __future__ import annotations

import re
import shutil
import subprocess  # noqa: TID251  # a step of the file
import sys
from pathlib import Path

from analyzer import __version__
from tests.support.captures import ROOT

FILE = (ROOT / "Containerfile").read_text(encoding="utf-8")
ALLOWED = {
    line.removeprefix("!")
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    if line.startswith("!")
}


def copied() -> list[str]:
    return re.findall(r"^COPY ([A-Za-z]+) ", FILE, re.MULTILINE)


def test_it_copies_what_the_context_holds() -> None:
    assert copied()
    assert set(copied()) == ALLOWED
    assert all((ROOT / name).exists() for name in copied())


def test_what_it_copies_is_enough_to_pack_the_program(tmp_path: Path) -> None:
    for name in copied():
        source = ROOT / name
        if source.is_dir():
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, tmp_path / name, ignore=ignore)
        else:
            shutil.copy(source, tmp_path / name)
    (step,) = re.findall(r"^RUN python3 (-m .*)$", FILE, re.MULTILINE)
    target = tmp_path / "kubeodds"
    words = step.replace("/kubeodds", str(target)).split()
    # Without any package that is installed here.
    subprocess.run([sys.executable, "-S", *words], cwd=tmp_path, check=True, env={})  # noqa: S603  # ours
    done = subprocess.run(  # noqa: S603  # ours  # our own program
        [sys.executable, "-I", "-S", str(target), "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"kubeodds {__version__}\n"


def test_the_tag_that_it_suggests_is_this_version() -> None:
    assert f"-t kubeodds:{__version__} " in FILE
