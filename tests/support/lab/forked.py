"""Python programs in forks of a process that has loaded the lab, which takes most of a short run.

What a program sees is as in a process of its own: arguments, folder, environment, pipes, and
modules that nothing has used yet. Only what happens while they are loaded has happened before.
This module is loaded by that process too, so it loads little itself.
"""

from __future__ import annotations

import atexit
import os
import runpy
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

#: What runs of the lab load; python-iptables is not among it, as it opens a socket when loaded.
LOADED: Final = (
    "analyzer.cli",
    "analyzer.kubeproxy.fastpath.quiet",
    "analyzer.kubeproxy.iptables",
    "analyzer.kubeproxy.nftables",
    "analyzer.parsers.kubernetes",
    "analyzer.parsers.pods",
    "analyzer.parsers.xt.matches.conntrack",
    "analyzer.parsers.xt.matches.statistic",
    "analyzer.parsers.xt.targets.dnat",
    "analyzer.parsers.xt.targets.masquerade",
    "analyzer.reports.lab_json",
    "analyzer.reports.lab_text",
    "netns_lab.affinity",
    "netns_lab.cli",
    "netns_lab.clients",
    "netns_lab.experiment",
    "netns_lab.measure",
    "netns_lab.phased",
    "netns_lab.tracked",
    "tests.support.lab.forked",
)
_CONTEXT: Final = get_context("forkserver")
_CONTEXT.set_forkserver_preload(list(LOADED))


def python(
    words: Sequence[str], where: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run what ``python`` would run with these words, which begin with -m, -c or a file.

    As `subprocess.run` does, it waits for all that holds stdout or stderr open.
    """
    out, its_out = _CONTEXT.Pipe(duplex=False)
    err, its_err = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(
        target=_run, args=(tuple(words), str(where), dict(environment), its_out, its_err)
    )
    process.start()
    its_out.close()
    its_err.close()
    with ThreadPoolExecutor(2) as pool:
        texts = [each.decode() for each in pool.map(_read, (out, err))]
    process.join()
    assert process.exitcode is not None
    return subprocess.CompletedProcess([sys.executable, *words], process.exitcode, *texts)


def _read(pipe: Connection) -> bytes:
    """Return all that is written into a pipe, as bytes and not as messages."""
    with pipe, open(pipe.fileno(), "rb", closefd=False) as stream:
        return stream.read()


def _run(
    words: Sequence[str],
    where: str,
    environment: Mapping[str, str],
    out: Connection,
    err: Connection,
) -> None:
    """Become the program: here, in the fork."""
    for pipe, descriptor in ((out, 1), (err, 2)):
        os.dup2(pipe.fileno(), descriptor)
        pipe.close()
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", errors="backslashreplace", buffering=1, closefd=False)
    os.chdir(where)
    os.environ.clear()
    os.environ.update(environment)
    first, *rest = words
    sys.argv = rest if first == "-m" else [first, *rest[first == "-c" :]]
    sys.path.insert(0, {"-m": where, "-c": ""}.get(first, str(Path(first).parent)))
    try:
        if first == "-m":
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        elif first == "-c":
            program = compile(rest[0], "<string>", "exec")
            exec(program, {"__name__": "__main__"})  # noqa: S102  # a test's program
        else:
            runpy.run_path(first, run_name="__main__")
    finally:
        # A fork ends without them; the interpreter calls them once all threads have ended.
        atexit._run_exitfuncs()  # noqa: SLF001  # there is no other way to call them
