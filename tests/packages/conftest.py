"""Packages as they are published, and clean environments to install them in."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.captures import ROOT

#: Of packages that are compared.
EPOCH = "1700000000"


def run(*words: str | Path, where: Path, **environment: str) -> str:
    """Run a program without anything of this environment's Python, and return what it prints."""
    done = subprocess.run(
        words,
        cwd=where,
        env={**_outside(), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def _outside() -> dict[str, str]:
    of_ours = ("PYTHON", "VIRTUAL_ENV", "SOURCE_DATE_EPOCH")
    return {name: each for name, each in os.environ.items() if not name.startswith(of_ours)}


@dataclass(frozen=True)
class Clean:
    """An environment in which nothing is installed."""

    folder: Path

    def program(self, name: str) -> Path:
        return self.folder / "bin" / name

    def install(self, what: str) -> None:
        self.pip("install", "--quiet", what)

    def pip(self, *words: str) -> str:
        pip = ("-m", "pip", "--disable-pip-version-check", *words)
        return run(self.program("python"), *pip, where=self.folder)


@pytest.fixture
def clean(tmp_path: Path) -> Clean:
    folder = tmp_path / "clean"
    venv.create(folder, with_pip=True, symlinks=True)
    return Clean(folder)


def build(source: Path, target: Path, *kinds: str) -> None:
    """Build packages of a folder: wheel, sdist."""
    given = [word for kind in kinds for word in ("-t", kind)]
    words = (sys.executable, "-m", "hatchling", "build", "-d", str(target), *given)
    run(*words, where=source, SOURCE_DATE_EPOCH=EPOCH)


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the project's wheel and sdist."""
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, folder, "wheel", "sdist")
    return folder


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def sdist(dist: Path) -> Path:
    (found,) = dist.glob("*.tar.gz")
    return found
