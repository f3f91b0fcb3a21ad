"""``make test``: every check beside each other, and what each of them took.

The tests run over all cores. Those of the lab mostly wait for time-outs of clients, so they run
beside the others, as do the formatter, the linter, the types and the import contract. What these
say is shown when they are done; a line for each part comes last.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess  # noqa: TID251  # it runs the checks
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.effort import PROFILE

ROOT: Final = Path(__file__).parents[2]
BIN: Final = Path(sys.executable).parent

#: What is checked beside the tests.
CHECKS: Final[dict[str, Sequence[str]]] = {
    "format": (str(BIN / "ruff"), "format", "--check", "."),
    "lint": (str(BIN / "ruff"), "check", "."),
    "types": (str(BIN / "mypy"),),
    "imports": (str(BIN / "lint-imports"), "--config", "pyproject.toml"),
}
_LAB: Final = "tests/lab"
#: Tests of the lab mostly wait: with one worker for each core they end last of all.
_LAB_WORKERS: Final = 1.5


@dataclass(frozen=True)
class Part:
    """One check that has ended.

    Attributes:
        seconds: of the clock, from its start.
    """

    name: str
    status: int
    seconds: float
    said: str = ""


def run(name: str, command: Sequence[str], *, shown: bool = False) -> Part:
    """Run one check; with `shown` its output is seen while it runs."""
    began = time.monotonic()
    done = subprocess.run(  # noqa: S603  # a program of ours
        command,
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=None if shown else subprocess.PIPE,
        stderr=None if shown else subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Part(name, done.returncode, time.monotonic() - began, done.stdout or "")


def _tests(*options: str, workers: float = 1) -> Sequence[str]:
    """What runs tests with so many workers for each core."""
    count = str(int(workers * (os.cpu_count() or 1)))
    return (sys.executable, "-m", "pytest", "-n", count, "--dist", "worksteal", *options)


def _quick() -> Sequence[str]:
    """What pytest is told in the quick check: which of the cases that are alike it takes."""
    return ("--quick", str(random.randrange(1000))) if PROFILE == "quick" else ()


def environment() -> dict[str, str]:
    """Return the environment of checks, in which Python may keep its bytecode somewhere.

    Where none may be written beside the sources, hundreds of processes would each compile them.
    """
    own = dict(os.environ)
    if own.pop("PYTHONDONTWRITEBYTECODE", None):
        own.setdefault("PYTHONPYCACHEPREFIX", str(ROOT / ".pytest_cache" / "bytecode"))
    return own


def summary(parts: Sequence[Part], seconds: float) -> str:
    """Return a line for each part and one for all of it."""
    rows = [(each.name, "failed" if each.status else "ok", each.seconds) for each in parts]
    failed = any(each.status for each in parts)
    rows.append(("make test", "failed" if failed else "ok", seconds))
    return "".join(f"{name:<10} {verdict:<7}{took:6.1f} s\n" for name, verdict, took in rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all checks; further arguments are options of pytest.

    1: something failed; 130: interrupted.
    """
    options = [*_quick(), *(sys.argv[1:] if arguments is None else arguments)]
    beside = CHECKS | {"lab": _tests(_LAB, *options, workers=_LAB_WORKERS)}
    # Batch systems ignore SIGINT, and what is started inherits that: it could not be interrupted.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    began = time.monotonic()
    with ThreadPoolExecutor(len(beside)) as pool:
        others: list[Future[Part]] = [pool.submit(run, *each) for each in beside.items()]
        try:
            command = _tests(f"--ignore={_LAB}", *options)
            tests = run("tests", command, shown=True)
        except KeyboardInterrupt:
            sys.stderr.write("make test: interrupted\n")
            return 130
    parts = [*(each.result() for each in others), tests]
    for part in parts:
        if part.said and (part.status or part.name == "lab"):
            sys.stdout.write(f"\n--- {part.name} ---\n{part.said}")
    sys.stdout.write("\n" + summary(parts, time.monotonic() - began))
    sys.stdout.flush()
    return int(any(part.status for part in parts))


if __name__ == "__main__":
    sys.exit(main())
