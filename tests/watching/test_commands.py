"""Commands of the user's: no shell, a time, a size, and nothing of them is left behind."""

from __future__ import annotations

import os
import shlex
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from analyzer.errors import InputError
from analyzer.watching.commands import printed
from analyzer.watching.signals import Signals


@pytest.fixture
def signals() -> Iterator[Signals]:
    with Signals() as found:
        yield found


def python(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_what_it_prints_is_returned_whole(signals: Signals) -> None:
    text = "import sys; sys.stdout.write('ab' * 300_000); sys.stderr.write('c' * 300_000)"
    assert printed(python(text), 20, 1 << 20, signals) == b"ab" * 300_000


def test_no_shell_reads_it(signals: Signals) -> None:
    words = shlex.split("echo '$HOME; echo *' | cat")
    assert printed(words, 20, 100, signals) == b"$HOME; echo * | cat\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["/no/such/program"], "cannot be run: No such file"),
        (["/etc"], "cannot be run: Permission denied"),
        (["a\0b"], "cannot be run"),
        (python("import sys; print('x'); sys.exit('so\\x1b[31m')"), "status 1: so\u241b[31m"),
        (python("import os; os.kill(os.getpid(), 9)"), "ended with signal 9"),
        (python("print('a' * 2000)"), "printed more than 1 KiB; --max-input SIZE"),
        (python("import sys\nwhile True: print('a' * 2000)"), "printed more than 1 KiB"),
        (python("import time; time.sleep(60)"), "took more than 0.4 s; --timeout"),
        (python("import os, time; os.close(1); os.close(2); time.sleep(60)"), "took more than"),
    ],
)
def test_what_fails_says_why(signals: Signals, words: list[str], says: str) -> None:
    seconds = 0.4 if "sleep" in words[-1] else 20
    begun = time.monotonic()
    with pytest.raises(InputError) as raised:
        printed(words, seconds, 1 << 10, signals)
    assert says in str(raised.value)
    assert "\x1b" not in str(raised.value)
    assert time.monotonic() - begun < 15


def test_what_it_has_started_ends_with_it(signals: Signals, tmp_path: Path) -> None:
    child = tmp_path / "child"
    text = (
        "import subprocess, sys, time\n"
        "each = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(child)!r}, 'w').write(str(each.pid))\n"
        "time.sleep(60)\n"
    )
    with pytest.raises(InputError, match="took more than"):
        printed(python(text), 1.5, 100, signals)
    number = int(child.read_text())
    until = time.monotonic() + 10
    while time.monotonic() < until and _lives(number):
        time.sleep(0.02)
    assert not _lives(number)


def _lives(number: int) -> bool:
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"  # whose parent was ended with it


def test_a_signal_ends_a_command_that_takes_its_time(signals: Signals) -> None:
    timer = threading.Timer(0.3, os.kill, (os.getpid(), 15))
    timer.start()
    with pytest.raises(InputError, match="stopped"):
        printed(python("import time; time.sleep(60)"), 30, 100, signals)
    timer.join()
    assert signals.is_ended()
