"""Workers that die, or are slow, as a file beside the dump says; and builds in processes."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from analyzer import cli
from analyzer.node_dumps import build as cluster_build
from analyzer.node_dumps.sources import Task
from analyzer.node_dumps.worker import ReadSettings, TaskResult, work

#: Beside a dump: its worker is killed once, or each time.
ONCE, ALWAYS = ".once.err", ".always.err"
_SLOW = 0.15


def mortal(settings: ReadSettings, task: Task) -> TaskResult:
    """Read, or be killed as for want of memory."""
    dump = task.files[0]
    once = Path(f"{dump}{ONCE}")
    if once.exists():
        once.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    if Path(f"{dump}{ALWAYS}").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return work(settings, task)


def slow(settings: ReadSettings, task: Task) -> TaskResult:
    """Read, and take a while."""
    time.sleep(_SLOW)
    return work(settings, task)


def slow_build(words: list[str]) -> None:
    """Build in this process, slowly, and keep every node at once; exit with its status."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # What a pool is handed, and how often what was read is kept.
    vars(cluster_build).update(work=slow, _KEEP_EVERY=1)
    with Path(os.devnull).open("w") as nowhere:
        sys.stdout = sys.stderr = nowhere
        status = cli.main(["cluster", "build", *words])
    os._exit(status)
