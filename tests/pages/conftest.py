"""Pages of captures, a browser to open them in, and what npm brings."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from analyzer import cli
from release.browser import Browser, browser, is_there
from tests.support import drifts
from tests.support.captures import ROOT

SOURCES: Final = ROOT / "release" / "pages"

#: Writes the page that a command prints, and returns where.
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """What writes pages, asked in the root of the project."""
    monkeypatch.chdir(ROOT)

    def written(*words: str, name: str = "page") -> Path:
        page = tmp_path / f"{name}.html"
        status = cli.main([*words, "--format", "html", "--output", str(page)])
        assert status in {0, 1}
        return page

    return written


@pytest.fixture(scope="session")
def window() -> Iterator[Browser]:
    """A browser that reaches nothing."""
    assert is_there(), "chromium, chromium-driver and selenium: PACKAGES_REQUIRED=1 make setup"
    with browser() as found:
        yield found


@pytest.fixture
def shown(window: Browser) -> Browser:
    """That browser, as on a laptop in daylight."""
    window.size(1280, 900)
    return window


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store of the dumps of a cluster in which most nodes have one difference."""
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "dumps").mkdir()
    objects = drifts.write(folder / "dumps")
    given = [str(folder / "dumps"), "--objects", str(objects), "--into", str(folder / "made")]
    assert cli.main(["cluster", "build", *given, "--engine", "serial"]) == 0
    return str(folder / "made")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which what pages carry was built anew, with the packages that are locked."""
    folder = tmp_path_factory.mktemp("pages")
    ignored = shutil.ignore_patterns("node_modules")
    shutil.copytree(SOURCES, folder, ignore=ignored, dirs_exist_ok=True)
    for words in (("ci", "--ignore-scripts"), ("run", "build", "--", str(folder / "built"))):
        done = subprocess.run(
            ["npm", *words], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    return folder
