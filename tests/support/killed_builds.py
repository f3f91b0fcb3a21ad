"""A build of a cluster's tables that is killed twice, and then holds what each dump says alone.

``python -m tests.support.killed_builds --nodes 200 --rules 100000 --engine dask`` writes dumps of
one cluster and reads them with two workers. When a quarter of the nodes is known one worker is
killed, and when half of them is, everything: the build, its workers, and Dask's scheduler. The same
command then goes on. What it keeps is held against `kubeodds loss` of some dumps.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import socket  # noqa: TID251  # which port of loopback is free
import subprocess  # noqa: TID251  # it runs the program
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from analyzer.kubeproxy.generate import node_name
from netns_lab.bench_cluster import Dumps
from tests.support.cluster_losses import alone_of, compared

ROOT: Final = Path(__file__).parents[2]
KUBEODDS: Final = (sys.executable, "-m", "analyzer")
_DASK: Final = (sys.executable, "-m", "distributed.cli.dask_scheduler")
_WORKER: Final = (sys.executable, "-m", "distributed.cli.dask_worker")
_POLL: Final = 0.05
_PATIENCE: Final = 3_000


class _Group:
    """A program in a session of its own, which is killed with all that it has started."""

    def __init__(self, words: Sequence[str], *, quiet: bool = False) -> None:
        output = subprocess.DEVNULL if quiet else None
        self.process = subprocess.Popen(  # noqa: S603  # a program of ours
            words,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'netns-lab'}"},
            start_new_session=True,
            stdout=output,
            stderr=output,
        )

    def kill(self) -> None:
        """Kill it and what it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def workers(self) -> list[int]:
        """Return the ids of the last of its processes in each line: those that start none."""
        parents: dict[int, int] = {}
        for each in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):  # it has ended
                fields = each.read_text().rpartition(")")[2].split()
                if int(fields[3]) == self.process.pid and fields[0] != "Z":
                    parents[int(each.parent.name)] = int(fields[1])
        own = parents.keys() - set(parents.values()) - {self.process.pid}
        return [each for each in own if b"resource_tracker" not in _words(each)]


def _words(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b"resource_tracker"


@contextmanager
def _dask(address: str) -> Iterator[list[_Group]]:
    """Run a scheduler and two workers; give what runs."""
    port = address.rpartition(":")[2]
    scheduler = (*_DASK, "--host", "127.0.0.1", "--port", port, "--no-dashboard")
    workers = (*_WORKER, address, "--nthreads", "1", "--nworkers", "2", "--no-dashboard")
    found = [_Group(scheduler, quiet=True), _Group(workers, quiet=True)]
    try:
        import distributed

        with distributed.Client(address, timeout=_PATIENCE) as client:
            client.wait_for_workers(2, timeout=_PATIENCE)
        yield found
    finally:
        for each in found:
            each.kill()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _known(made: Path) -> int:
    """Return how many nodes are known by now."""
    if not [*(made / "nodes").glob("*.parquet")]:
        return 0
    import duckdb

    asked = f"SELECT count(DISTINCT node) FROM '{made}/nodes/*.parquet'"  # noqa: S608  # our folder
    row = duckdb.connect().execute(asked).fetchone()
    return int(row[0]) if row else 0


def _wait(build: _Group, made: Path, number: int) -> None:
    deadline = time.monotonic() + _PATIENCE
    while _known(made) < number:
        assert build.process.poll() is None, "the build has ended before it was killed"
        assert time.monotonic() < deadline, "the build does not go on"
        time.sleep(_POLL)


def run(folder: Path, nodes: int, rules: int, engine: str, held: int, seed: int) -> str:
    """Build, kill and compare; return what came of it.

    Raises:
        AssertionError: something was lost.
    """
    chance = random.Random(seed)  # no secret
    dumps, made = folder / "dumps", folder / "made"
    dumps.mkdir()
    Dumps(rules, nodes).write(dumps, nodes)
    objects = (dumps / "objects.json").rename(folder / "objects.json")
    address = "processes" if engine == "processes" else f"tcp://127.0.0.1:{_free_port()}"
    words = [*KUBEODDS, "cluster", "build", str(dumps), "--objects", str(objects)]
    words += ["--into", str(made), "--engine", address]
    words += [] if engine == "dask" else ["--workers", "2"]
    began = time.monotonic()
    with ExitStack() as stack:
        beside = stack.enter_context(_dask(address)) if engine == "dask" else []
        build = _Group(words)
        stack.callback(build.kill)
        _wait(build, made, nodes // 4)
        workers = (beside[1] if beside else build).workers()
        assert workers, "the build was over before a worker could be killed: more nodes are needed"
        victim = chance.choice(workers)
        os.kill(victim, signal.SIGKILL)
        _wait(build, made, nodes // 2)
    known = _known(made)
    assert known < nodes, "the build was over before it was killed: more nodes are needed"
    with ExitStack() as stack:
        if engine == "dask":
            stack.enter_context(_dask(address))
        done = subprocess.run(  # noqa: S603  # a program of ours
            words, cwd=ROOT, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    assert f"{nodes} nodes known" in done.stdout, done.stdout
    assert ", 0 failed" in done.stdout, done.stdout
    took = time.monotonic() - began
    dead = node_name(chance.randrange(nodes))
    living = [each for each in map(node_name, range(nodes)) if each != dead]
    told = ("--dead-node", dead, "-o", "json")
    alone = {
        node: alone_of(
            _said("loss", f"{dumps}/{node}.txt", "--objects", str(objects), "--node", node, *told)
        )
        for node in chance.sample(living, min(held or len(living), len(living)))
    }
    number = compared(_said("cluster", "loss", str(made), *told), alone)
    return (
        f"{nodes} nodes x {rules:,} rules, {engine}: worker {victim} killed, then all with {known} "
        f"nodes known, finished after {took:.0f} s; {number} losses of {len(alone)} dumps are "
        "those of each dump alone"
    )


def _said(*words: str) -> str:
    done = subprocess.run(  # noqa: S603  # a program of ours
        (*KUBEODDS, *words), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def main() -> int:
    """Run it as the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=600)
    parser.add_argument("--rules", type=int, default=2_000)
    parser.add_argument("--engine", choices=["processes", "dask"], default="processes")
    parser.add_argument("--held", type=int, default=6, help="dumps asked alone; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = run(Path(folder), given.nodes, given.rules, given.engine, given.held, given.seed)
    print(made)  # noqa: T201  # it is its output
    return 0


if __name__ == "__main__":
    sys.exit(main())
