"""The command line of `loss` where nothing is marked dead: an overview, and no all-clear."""

from __future__ import annotations

import pytest

from tests.support.commands import DUMP, OBJECTS, Command
from tests.support.losses import ALL_CLEAR, OWN, TWO, service, with_services


def test_without_anything_dead_there_is_an_overview_and_no_all_clear(command: Command) -> None:
    done = command("loss", DUMP, *OBJECTS)
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("Nothing marked dead.\n")
    assert "--dead-node  master   3 addresses      100.0%  default/kubernetes:https\n" in done.out
    assert "--dead-node  worker1  2 addresses       50.0%  default/app and 3 more\n" in done.out
    assert "5 ServicePorts: 5 with endpoints.\n" in done.out
    assert "Say what is dead" in done.out.splitlines()[-1]
    assert "No new flow" not in done.out
    alone = command("loss", DUMP).out
    assert "Node unknown for 5 endpoint addresses. Pass --objects or --node-of" in alone


def test_the_overview_tells_zones_and_what_is_not_judged(command: Command) -> None:
    slices = {
        "kind": "EndpointSlice",
        "endpoints": [{"addresses": ["10.0.0.1"], "nodeName": "n1", "zone": "east"}],
    }
    given = with_services(command, slices, OWN, service("ns/gone"))
    done = command("loss", command.file("dump.txt", TWO), *given)
    assert "--dead-zone  east  1 address  50.0 to 100.0%  ns/a:http\n" in done.out
    assert "Not judged: 1 ServicePort of the objects" in done.out


@pytest.mark.parametrize("asked", [["--max-loss", "0"], ["--format", "json"], ["--format", "tsv"]])
def test_a_program_is_told_that_nothing_is_marked_dead(command: Command, asked: list[str]) -> None:
    done = command("loss", DUMP, *OBJECTS, *asked)
    assert done.status == 2
    assert done.out == ""
    words = " ".join(asked) if asked[0] == "--format" else asked[0]
    assert done.err == (
        f"kubeodds: {words}: nothing is marked dead; add --dead-node, --dead-zone or --dead\n"
    )


def test_a_node_without_endpoints_may_die_and_nothing_is_lost(command: Command) -> None:
    done = command("loss", command.file("dump.txt", TWO), *with_services(command, OWN))
    assert done.out.startswith("Nothing marked dead")
    done = command("loss", "dump.txt", *with_services(command, OWN), "--dead-node", "n3")
    assert ALL_CLEAR.search(done.out)
