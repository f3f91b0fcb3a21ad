"""The command line of `lab` where what it needs is not installed."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest

from netns_lab import cli as lab
from tests.test_cli import DUMP, OBJECTS, Command, Done, command

__all__ = ["command"]


def says(module: str) -> Done:
    line = f"the lab needs the module {module}, which is not installed; pip install 'kubeodds[lab]'"
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
    monkeypatch.setattr(lab, "leave_host", lambda: None)
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
