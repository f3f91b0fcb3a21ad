"""hostPorts are each node's own: others lack them, and no object has them, without fault."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.commands import Command
from tests.support.noise import DEAD, NOISE, OBJECTS, dump

OF_POD = ("--dead", "10.244.1.50")


@pytest.fixture
def dumps(command: Command) -> list[str]:
    """The dumps of two nodes, of which the second has a hostPort."""
    folder = command.folder / "dumps"
    folder.mkdir()
    found = [folder / f"{name}-iptables-save.txt" for name in ("master", "worker1")]
    for name, path in zip(("base", "portmap"), found, strict=True):
        shutil.copy(NOISE / f"{name}.txt", path)
    return [str(each) for each in found]


def test_to_watch_a_host_port_is_no_drift(command: Command) -> None:
    asked = ("--rules", dump("portmap"), *OBJECTS, "--node", "worker1", "--max-age", "999999h")
    done = command("watch", *asked, "--npd")
    assert done.status == 0
    assert done.out == "6 ServicePorts: none loses new flows; rules match the objects\n"


def test_several_dumps_are_judged_without_a_host_port_at_each(
    command: Command, dumps: list[str]
) -> None:
    done = command("loss", *dumps, *OBJECTS, *OF_POD, "--max-loss", "100%", "--format", "json")
    assert done.status == 0, done.err
    services = {each["name"]: each for each in json.loads(done.out)["services"]}
    assert services["hostPort 80"]["missing"] == []
    assert command("loss", *dumps, *OBJECTS, *OF_POD, "--max-loss", "99%").status == 1


def test_a_cluster_is_judged_without_a_host_port_at_each_node(
    command: Command, dumps: list[str]
) -> None:
    pytest.importorskip("duckdb")
    folder = str(Path(dumps[0]).parent)
    built = command("cluster", "build", folder, *OBJECTS, "--into", "made", "--engine", "serial")
    assert built.status == 0, built.err
    done = command("cluster", "loss", "made", *DEAD, "--max-loss", "100%")
    assert (done.status, done.err) == (0, "")
    assert "Not completely judged" not in done.out
    whatif = command("cluster", "whatif", "made", "--max-loss", "100%", "--format", "json")
    assert (whatif.status, whatif.err) == (0, "")
    drift = command("cluster", "drift", "made")
    assert (drift.status, "hostPort" in drift.out) == (0, False), drift.out
