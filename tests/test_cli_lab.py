"""The command line of `lab` where it cannot start: what it needs is not there, or is dead."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest

from analyzer.failure.models import Dead
from analyzer.model.cluster import Cluster, Node
from analyzer.model.value import replace
from netns_lab import asked
from netns_lab import cli as lab
from netns_lab.errors import LabError
from netns_lab.plan import plan
from tests.support.commands import DUMP, OBJECTS, Command, Done
from tests.support.dumps import dump, two_endpoints, view_of


def says(module: str) -> Done:
    line = (
        f"the lab needs the module {module}, which is not installed; pip install '.[lab]' in a "
        "clone of kubeodds"
    )
    return Done(2, "", f"kubeodds: {line}\n")


@pytest.mark.parametrize("arguments", [[], ["run", DUMP], ["--help"]])
def test_without_the_lab_one_line_says_what_to_install(
    command: Command, monkeypatch: pytest.MonkeyPatch, arguments: Sequence[str]
) -> None:
    monkeypatch.setitem(sys.modules, "netns_lab.cli", None)
    assert command("lab", *arguments) == says("netns_lab")


@pytest.mark.parametrize("verb", ["run", "clients"])
def test_without_scapy_the_lab_says_what_to_install(
    command: Command, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setattr(asked, "leave_host", lambda: None)
    for module in ("scapy", "scapy.layers.inet", "scapy.layers.l2", "scapy.packet"):
        monkeypatch.setitem(sys.modules, module, None)
    for module in ("experiment", "replay", "count", "clients"):
        monkeypatch.delitem(sys.modules, f"netns_lab.{module}", raising=False)
    done = command("lab", verb, DUMP, *OBJECTS, "--node", "worker1", "--service", "app")
    assert done == says("scapy")


def test_a_module_that_is_missing_in_the_middle_of_a_run_is_named(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(_: Sequence[str]) -> int:
        raise ModuleNotFoundError("No module named 'scipy'", name="scipy.stats")

    monkeypatch.setattr(lab, "main", run)
    assert command("lab", "run", DUMP) == says("scipy")


def test_a_module_of_ours_that_is_missing_is_a_fault_of_ours(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(_: Sequence[str]) -> int:
        raise ModuleNotFoundError("No module named 'analyzer.x'", name="analyzer.x")

    monkeypatch.setattr(lab, "main", run)
    with pytest.raises(ModuleNotFoundError):
        command("lab", "run", DUMP)


@pytest.mark.parametrize(
    "dead",
    [
        Dead(endpoints=frozenset(), nodes=("worker1",)),
        Dead(endpoints=frozenset(), zones=("east",)),
    ],
)
def test_a_dead_node_or_one_of_a_dead_zone_has_no_flows_to_replay(dead: Dead) -> None:
    view = replace(view_of(dump(*two_endpoints())), node="worker1")
    cluster = Cluster({"worker1": Node(name="worker1", zone="east")})
    with pytest.raises(LabError, match="this dump is from worker1, which you declared dead"):
        plan(view, cluster, dead, flows=1)
