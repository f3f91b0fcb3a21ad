"""The one file: it runs alone, and the same sources give the same bytes."""

from __future__ import annotations

import os
import subprocess  # noqa: TID251  # as a person runs it
import sys
import zipfile
from pathlib import Path

import pytest

from analyzer import __version__
from release import zipapp
from tests.support.commands import CAPTURE, DUMP, Command


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("zipapp") / "kubeodds.pyz"
    assert zipapp.main([str(target)]) == 0
    return target


def run(*words: str, where: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  # our own program
        words,
        cwd=where,
        env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def alone(program: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run it without any installed package, where nothing of the project lies."""
    return run(sys.executable, "-I", "-S", str(program), *words, where=program.parent)


def test_it_is_a_program(program: Path) -> None:
    done = run(str(program), "--version", where=program.parent)
    assert (done.returncode, done.stdout) == (0, f"kubeodds {__version__}\n")


@pytest.mark.deep
def test_alone_it_answers_as_the_installed_program_does(program: Path, command: Command) -> None:
    objects = str(CAPTURE / "objects.json")
    for words in (
        ["loss", DUMP, "--objects", objects, "--dead-node", "master"],
        ["services", DUMP, "--format", "json"],
        ["collect", "--twice", "10s"],
        ["completion", "fish"],
    ):
        done, wanted = alone(program, *words), command(*words)
        assert (done.returncode, done.stdout, done.stderr) == (wanted.status, wanted.out, "")


def test_the_lab_is_not_in_it_which_it_says(program: Path) -> None:
    done = alone(program, "lab", "run", DUMP)
    assert done.returncode == 2
    assert "the lab needs the module netns_lab, which is not installed" in done.stderr
    with zipfile.ZipFile(program) as archive:
        names = archive.namelist()
    assert names == sorted(names)
    assert {name.partition("/")[0] for name in names} == {"LICENSE", "__main__.py", "analyzer"}
    assert not any(name.endswith(".pyc") for name in names)


def test_the_same_sources_give_the_same_bytes(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.pyz"
    before = os.umask(0o077)
    try:
        monkeypatch.setenv("TZ", "Asia/Tokyo")
        zipapp.write(other)
    finally:
        os.umask(before)
    assert other.read_bytes() == program.read_bytes()
    assert other.stat().st_mode & 0o777 == 0o755


def test_the_time_is_that_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    target = tmp_path / "kubeodds.pyz"
    zipapp.write(target)
    with zipfile.ZipFile(target) as archive:
        assert {each.date_time for each in archive.infolist()} == {(2023, 11, 14, 22, 13, 20)}
