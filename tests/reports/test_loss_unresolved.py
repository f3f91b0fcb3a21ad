"""Flows that may end anywhere are named where nothing is dead, though they do not count as lost."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.commands import DUMP, Command

TEXT = Path(DUMP).read_text()
NAME = "kube-system/kube-dns:dns"
#: The chains of its two endpoints.
CHAINS = ("KUBE-SEP-6E7XQMQ4RAYOWTTM", "KUBE-SEP-222YD7DQOUNKFRLL")


def edited(*chains: str) -> str:
    """Return the dump where the target of these chains is not understood."""
    text = TEXT
    for each in chains:
        text = re.sub(rf"(-A {each} -p udp .*)-j DNAT .*", r"\1-j STRANGE", text)
    return text


@pytest.mark.parametrize(("chains", "most"), [(CHAINS[1:], "50.0%"), (CHAINS, "100.0%")])
def test_with_nothing_dead_open_flows_are_named(
    command: Command, chains: tuple[str, ...], most: str
) -> None:
    dump = command.file("dump.txt", edited(*chains))
    says = f"\nNot known where up to {most} of new flows end, with nothing dead: {NAME}. They may"
    done = command("loss", dump)
    assert (done.status, says in done.out) == (0, True)
    done = command("loss", dump, DUMP, "--node", "n1,n2")
    assert (done.status, says in done.out) == (0, True)
    # If anything is dead that the dump need not show, so many may be lost.
    told = json.loads(command("loss", dump, "--dead", "10.244.77.7", "-o", "json").out)
    (service,) = (each for each in told["services"] if each["name"] == NAME)
    of_pods = next(each["loss"] for each in service["routes"] if each["source"] == "pod")
    assert f"{100 * of_pods['upper']['value']:.1f}%" == most
    # No threshold passes on it.
    done = command("loss", dump, "--max-loss", "10%")
    assert (done.status, "--max-loss: nothing is marked dead" in done.err) == (2, True)


def test_flows_that_reach_one_endpoint_or_another_are_not(command: Command) -> None:
    text = TEXT.replace("-m statistic --mode random", "-m strange --mode random")
    for dump in (command.file("draws.txt", text), DUMP):
        assert "Not known where" not in command("loss", dump).out
