"""Programs that tests of the lab run in forks see what they would in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.lab import forked
from tests.support.lab.running import environment

#: What a program is given, and what it leaves behind: each prints it in the same words.
SEEN = """
import atexit, os, sys
print(__name__, sys.argv[-1], os.getcwd(), os.environ.get("GIVEN"), os.environ.get("TOLD"))
print(sys.stdin.read(), os.isatty(1), file=sys.stderr)
atexit.register(print, "at its end")
"""


@pytest.mark.parametrize(
    ("ends", "status"), [("", 0), ("sys.exit(3)", 3), ("sys.exit('why')", 1), ("os.kill(0, 9)", -9)]
)
@pytest.mark.parametrize("by", ["-c", "-m", "a file"])
def test_a_fork_is_given_and_gives_what_a_process_would(
    by: str, ends: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOLD", "by this process, which it is none of")
    program = f"{SEEN}\n{ends.replace('os.kill(0', 'os.kill(os.getpid()')}"
    (tmp_path / "seen.py").write_text(program)
    given = {**environment(), "GIVEN": "this"}
    del given["TOLD"]
    given.pop("PYTHONUNBUFFERED", None)  # whoever is killed says nothing of what is in its buffer
    first = {"-c": ["-c", program], "-m": ["-m", "seen"], "a file": [str(tmp_path / "seen.py")]}
    words = [*first[by], "its last word"]
    found = forked.python(words, tmp_path, given)
    usual = subprocess.run(
        [sys.executable, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=given,
        check=False,
    )
    assert found.returncode == usual.returncode == status
    assert (found.stdout, found.stderr) == (usual.stdout, usual.stderr)


def test_what_one_changes_the_next_has_as_it_was(tmp_path: Path) -> None:
    change = "from netns_lab import cli; cli.main = None; print(cli.main)"
    assert forked.python(["-c", change], tmp_path, environment()).stdout == "None\n"
    look = "from netns_lab import cli; print(cli.main.__name__)"
    assert forked.python(["-c", look], tmp_path, environment()).stdout == "main\n"


def test_whatever_holds_its_output_is_waited_for(tmp_path: Path) -> None:
    program = "import subprocess; subprocess.Popen(['sh', '-c', 'sleep 0.2; echo late'])"
    assert forked.python(["-c", program], tmp_path, environment()).stdout == "late\n"
