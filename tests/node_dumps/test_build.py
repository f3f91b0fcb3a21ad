"""``cluster build``: whatever happens to whom reads dumps, none is lost and none is read twice."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from analyzer.cluster.content import New
from analyzer.cluster.store import Store
from analyzer.kubeproxy.generate import node_name
from analyzer.model.value import replace
from analyzer.node_dumps import build as cluster_build
from analyzer.node_dumps.sources import Task
from analyzer.node_dumps.worker import ReadSettings, TaskResult, work
from tests.support.cluster_builds import NODES, kept, words
from tests.support.cluster_workers import ALWAYS, ONCE, mortal, slow_build
from tests.support.commands import Command
from tests.support.effort import PROFILE

pytest.importorskip("duckdb")


@pytest.mark.deep
@pytest.mark.parametrize("engine", ["serial", "processes"])
def test_every_engine_gives_the_same(
    dumps: Path, command: Command, clean: dict[str, tuple[str, str]], engine: str
) -> None:
    done = command("cluster", "build", *words(dumps, "--workers", "2", engine=engine))
    assert (done.status, done.err) == (0, "")
    assert f"{NODES} nodes known, {NODES} read now, 0 failed" in done.out
    assert kept() == clean


@pytest.mark.skipif(PROFILE != "soak", reason="starting Dask takes seconds")
def test_a_scheduler_of_dask_gives_the_same(
    dumps: Path, command: Command, clean: dict[str, tuple[str, str]]
) -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as local:
        done = command("cluster", "build", *words(dumps, engine=local.scheduler_address))
    assert (done.status, done.err) == (0, "")
    assert kept() == clean


def test_without_dask_it_is_said_what_to_install(
    dumps: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = command("cluster", "build", *words(dumps, engine="tcp://127.0.0.1:1"))
    assert done.status == 2
    assert "pip install '.[cluster]'" in done.err


@pytest.mark.deep
def test_contents_that_were_lost_on_their_way_are_given_again(
    dumps: Path,
    command: Command,
    clean: dict[str, tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost: list[str] = []

    def lossy(settings: ReadSettings, task: Task) -> TaskResult:
        result = work(settings, task)
        if len(lost) < 2:
            lost.append(task.source)
            return replace(result, new=New.nothing())
        return result

    monkeypatch.setattr(cluster_build, "work", lossy)
    assert command("cluster", "build", *words(dumps)).status == 0
    assert len(lost) == 2
    assert kept() == clean


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (MemoryError(), "more memory than a worker may have; see --worker-memory"),
        (ZeroDivisionError("by nothing"), "a bug in kubeodds, ZeroDivisionError: by nothing"),
    ],
)
def test_what_goes_wrong_in_a_worker_is_why_its_node_failed(
    dumps: Path,
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    says: str,
) -> None:
    def broken(settings: ReadSettings, task: Task) -> TaskResult:
        if task.node == node_name(3):
            raise error
        return work(settings, task)

    monkeypatch.setattr(cluster_build, "work", broken)
    assert command("cluster", "build", *words(dumps)).status == 0
    assert {name for name, (digest, _) in kept().items() if not digest} == {node_name(3)}
    assert says in kept()[node_name(3)][1]


def test_a_second_run_reads_nothing_again(dumps: Path, command: Command) -> None:
    assert command("cluster", "build", *words(dumps)).status == 0
    done = command("cluster", "build", *words(dumps))
    assert f"{NODES} nodes known, 0 read now" in done.out


def test_a_dump_that_has_changed_is_read_again(dumps: Path, command: Command) -> None:
    assert command("cluster", "build", *words(dumps)).status == 0
    before = kept()
    first = dumps / f"{node_name(0)}-iptables-save.txt"
    lines = first.read_text().split("\n")
    lost = next(at for at, line in enumerate(lines) if line.startswith("-A KUBE-SERVICES -d"))
    first.write_text("\n".join(lines[:lost] + lines[lost + 1 :]))
    done = command("cluster", "build", *words(dumps))
    assert f"{NODES} nodes known, 1 read now" in done.out
    assert {name for name, row in kept().items() if row != before[name]} == {node_name(0)}


def test_a_killed_worker_loses_nothing(
    dumps: Path,
    command: Command,
    clean: dict[str, tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster_build, "work", mortal)
    for number in (1, 4):
        (dumps / f"{node_name(number)}-iptables-save.txt{ONCE}").touch()
    done = command("cluster", "build", *words(dumps, "--workers", "2", engine="processes"))
    assert done.status == 0
    assert kept() == clean
    assert not [*dumps.glob(f"*{ONCE}")]


@pytest.mark.deep
def test_a_dump_that_kills_its_worker_fails_and_the_others_do_not(
    dumps: Path,
    command: Command,
    clean: dict[str, tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster_build, "work", mortal)
    deadly = dumps / f"{node_name(2)}-iptables-save.txt{ALWAYS}"
    deadly.touch()
    given = words(dumps, "--workers", "2", engine="processes")
    done = command("cluster", "build", *given)
    found = kept()
    assert done.status == 0
    assert "was killed twice, with nothing else" in found[node_name(2)][1]
    assert [name for name, row in found.items() if row != clean[name]] == [node_name(2)]
    assert command("cluster", "build", *given, "--strict").status == 3
    deadly.unlink()
    assert "1 read now, 0 failed" in command("cluster", "build", *given).out
    assert kept() == clean


@pytest.mark.deep
@pytest.mark.parametrize("with_signal", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_ended_goes_on_where_it_stopped(
    dumps: Path,
    command: Command,
    clean: dict[str, tuple[str, str]],
    with_signal: signal.Signals,
) -> None:
    given = words(dumps, "--workers", "1", engine="processes")
    process = multiprocessing.get_context("spawn").Process(target=slow_build, args=(given,))
    process.start()
    deadline = time.monotonic() + 60
    while not _has_some() and process.is_alive() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert process.pid is not None
    os.kill(process.pid, with_signal)
    process.join(60)
    status = process.exitcode
    assert status == (130 if with_signal is signal.SIGINT else -signal.SIGKILL)
    before = kept()
    assert 0 < len(before) < NODES
    done = command("cluster", "build", *given)
    assert done.status == 0
    assert f"{NODES} nodes known, {NODES - len(before)} read now, 0 failed" in done.out
    assert kept() == clean


def _has_some() -> bool:
    return any(each.name != "part-000000.parquet" for each in Path("made/nodes").glob("*.parquet"))


@pytest.mark.deep
def test_two_runs_at_once_are_refused(dumps: Path, command: Command) -> None:
    assert command("cluster", "build", *words(dumps)).status == 0
    about = json.loads(Path("made/build.json").read_text())["asked"]
    store = Store.create("made", about, [])
    try:
        done = command("cluster", "build", *words(dumps))
    finally:
        store.close()
    assert done.status == 2
    assert "another run is building there" in done.err
