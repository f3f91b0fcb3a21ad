"""Completion: what a shell offers behind words as they are typed."""

from __future__ import annotations

import shutil
import subprocess  # noqa: TID251  # a shell completes
from pathlib import Path

import pytest

from tests.support.captures import ROOT
from tests.support.commands import Command

SCRIPTS = ROOT / "analyzer" / "data" / "completion"
#: What bash does when TAB is pressed: the words so far, and the one that is being typed.
_TAB = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_shtab_kubeodds "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_printed_as_it_is_kept(command: Command, shell: str) -> None:
    done = command("completion", shell)
    assert (done.status, done.err) == (0, "")
    assert done.out == (SCRIPTS / f"kubeodds.{shell}").read_text(encoding="utf-8")


def test_another_shell_is_refused(command: Command) -> None:
    done = command("completion", "tcsh")
    assert done.status == 2
    assert "invalid choice: 'tcsh'" in done.err


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("lo", {"loss"}),
        ("lab ru", {"run"}),
        ("help tr", {"tree", "trace"}),
        ("loss --dead-", {"--dead-node", "--dead-zone"}),
        ("loss dump.txt --format j", {"json"}),
        ("loss du", {"dump.txt"}),
        ("loss dump.txt --objects ob", {"objects.json"}),
        ("diff du", {"dump.txt"}),
        ("completion z", {"zsh"}),
    ],
)
def test_bash_offers_what_may_stand_there(tmp_path: Path, typed: str, offered: set[str]) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    for name in ("dump.txt", "objects.json"):
        (tmp_path / name).touch()
    words = ["kubeodds", *typed.split(" ")]
    done = subprocess.run(  # noqa: S603  # our own script
        [bash, "-c", _TAB, "bash", str(SCRIPTS / "kubeodds.bash"), *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(done.stdout.split()) == offered


@pytest.mark.parametrize(("shell", "parse"), [("zsh", "-n"), ("fish", "--no-execute")])
def test_other_shells_read_their_script(shell: str, parse: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    script = str(SCRIPTS / f"kubeodds.{shell}")
    done = subprocess.run(  # noqa: S603  # our own script
        [program, parse, script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
