"""Files that are made of the program are what it gives today."""

from __future__ import annotations

import re
import shutil
import subprocess  # noqa: TID251  # man shows the pages
from pathlib import Path

import pytest

from analyzer.arguments import command_line
from release import completion, generated, manual
from release.commands import every_command, walk

ROOT = generated.ROOT
PROGRAMS = {each.prog for each in walk(every_command())}


def test_every_generated_file_is_what_its_generator_gives() -> None:
    assert generated.stale() == [], "make generated"


@pytest.mark.deep
def test_a_file_that_is_old_or_gone_or_nobodys_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generated, "ROOT", tmp_path)
    generated.main()
    assert generated.stale() == []
    pages = tmp_path / manual.FOLDER
    (pages / "kubeodds.1").write_text("old", encoding="utf-8")
    (pages / "kubeodds-loss.1").unlink()
    (pages / "kubeodds-none.1").touch()
    assert generated.stale() == [f"man/kubeodds{name}.1" for name in ("-loss", "-none", "")]
    generated.main()
    assert generated.stale() == []


def test_every_verb_has_a_manual_page() -> None:
    pages = {path.stem.replace("-", " ") for path in (ROOT / manual.FOLDER).iterdir()}
    assert pages == PROGRAMS - {"kubeodds help"}


@pytest.mark.alike
@pytest.mark.parametrize("page", sorted((ROOT / manual.FOLDER).iterdir()), ids=lambda p: p.stem)
def test_man_shows_a_page_without_a_warning(page: Path) -> None:
    man = shutil.which("man")
    if man is None:
        pytest.skip("man is not installed")
    done = subprocess.run(  # noqa: S603  # our own page
        [man, "--warnings", "--local-file", str(page)],
        capture_output=True,
        text=True,
        check=False,
        env={"LC_ALL": "C.UTF-8", "MANWIDTH": "80", "PATH": "/usr/bin:/bin"},
    )
    if "minimized" in done.stdout:
        pytest.skip("man has been removed from this system")
    assert (done.returncode, done.stderr) == (0, "")
    for heading in ("NAME", "SYNOPSIS", "EXIT STATUS", "SEE ALSO"):
        assert f"\n{heading}\n" in done.stdout


def test_each_option_is_in_its_manual_page() -> None:
    for parser in walk(every_command()):
        path = ROOT / manual.FOLDER / f"{parser.prog.replace(' ', '-')}.1"
        if parser.prog == "kubeodds help":
            continue
        said = path.read_text(encoding="utf-8").replace("\\-", "-")
        options = {o for a in parser._actions for o in a.option_strings}  # noqa: SLF001  # as above
        told = set(re.findall(r"\\fB(--?[a-z][a-z-]*)\\fR", said))
        assert told == options - {"-h", "--help"}


def test_the_shells_are_those_of_the_command_line() -> None:
    (action,) = (
        each
        for each in command_line.parser_of("completion")._actions  # noqa: SLF001  # no public name
        if each.dest == "shell"
    )
    assert tuple(action.choices or ()) == completion.SHELLS
