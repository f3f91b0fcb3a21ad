"""What the rules of a dead node lack cannot lose anybody's flows: no answer depends on it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.captures import FIXTURES
from tests.support.cluster_losses import alone_of, compared
from tests.support.commands import DUMP, OBJECTS, Command

pytest.importorskip("duckdb")
MASTER = FIXTURES / "1.36.2-iptables-legacy" / "two-node" / "iptables-legacy-save.txt"
WORKER1 = Path(DUMP).read_text()
ROWS = WORKER1.splitlines(keepends=True)
FILTER = re.compile(r"^\*filter\n.*?^COMMIT\n", re.MULTILINE | re.DOTALL)
#: What may be wrong with the dump of the node that is dead.
EDITED = {
    "lacks a Service": "".join(row for row in ROWS if "default/app" not in row),
    "does not jump to a Service": "".join(row for row in ROWS if "app cluster IP" not in row),
    "is truncated": "".join(ROWS[:-12]),
    "lacks a table": FILTER.sub("", WORKER1),
    "has rules that are not understood": WORKER1.replace(
        "-A KUBE-SERVICES -d", "-A KUBE-SERVICES -m strange --option 3 -d"
    ),
    "has no Services": "*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n",
}
DEAD = ("--dead-node", "worker1")
PREDICTED = ("--kube-proxy", "1.36", "--mode", "iptables", "--seed", "1")
#: What of JSON says which dumps there are, not what is lost.
BASIS = {"dumps", "left_out"}


def built(command: Command, worker1: str, made: str = "made") -> str:
    (command.folder / "dumps").mkdir(exist_ok=True)
    command.file("dumps/master.txt", MASTER.read_bytes())
    command.file("dumps/worker1.txt", worker1)
    into = ("--into", made, "--engine", "serial")
    done = command("cluster", "build", "dumps", *OBJECTS, *into)
    assert done.status == 0, done.err
    return made


def losses_of(text: str) -> dict[str, Any]:
    return {key: told for key, told in json.loads(text).items() if key not in BASIS}


@pytest.mark.parametrize("worker1", EDITED.values(), ids=EDITED)
def test_losses_do_not_depend_on_the_dump_of_a_dead_node(command: Command, worker1: str) -> None:
    made = built(command, worker1)
    asked = ("cluster", "loss", made, *DEAD)
    done = command(*asked, "-o", "json")
    alone = command("loss", str(MASTER), *OBJECTS, "--node", "master", *DEAD, "-o", "json")
    assert compared(done.out, {"master": alone_of(alone.out)})
    assert losses_of(done.out)["not_judged"] == []
    assert losses_of(done.out)["diagnostics"] == []
    assert command(*asked, "--max-loss", "100%", "--strict").status == 0


@pytest.mark.parametrize("worker1", list(EDITED.values())[:-1], ids=[*EDITED][:-1])
def test_nor_do_they_if_the_other_nodes_are_predicted(command: Command, worker1: str) -> None:
    objects = ("--from-objects", OBJECTS[1], *PREDICTED, *DEAD)
    command.file("worker1.txt", worker1)
    found = [
        command("loss", *dump, "--node", "worker1", *objects, "-o", "json").out
        for dump in (("worker1.txt",), (DUMP,))
    ]
    assert losses_of(found[0]) | {"prediction": None} == losses_of(found[1]) | {"prediction": None}
    asked = ("loss", "worker1.txt", "--node", "worker1", *objects)
    assert command(*asked, "--max-loss", "100%", "--strict").status == 0


@pytest.mark.parametrize(
    ("edited", "says"),
    [
        ("lacks a Service", "Not judged at worker1, whose rules do not have it: default/app."),
        ("is truncated", "The dump is truncated: "),
        ("lacks a table", "Not in the dump: table filter of some nodes. "),
        ("has no Services", "Not judged: worker1: "),
    ],
)
def test_they_do_on_that_of_a_living_node(command: Command, edited: str, says: str) -> None:
    made = built(command, EDITED[edited])
    done = command("cluster", "loss", made, "--dead-node", "master", "--max-loss", "100%")
    assert (done.status, f"\n{says}" in done.out) == (1, True)
    # The failures that are compared include those that worker1 survives.
    done = command("cluster", "whatif", made, "--max-loss", "100%")
    assert (done.status, f"\n{says}" in done.out) == (1, True)


def test_a_service_that_only_dead_nodes_have_is_not_judged_at_the_others(
    command: Command,
) -> None:
    made = built(command, WORKER1)
    lacking = "".join(
        row for row in MASTER.read_text().splitlines(keepends=True) if "default/app" not in row
    )
    command.file("dumps/master.txt", lacking)
    assert command("cluster", "build", "dumps", *OBJECTS, "--into", made).status == 0
    done = command("cluster", "loss", made, *DEAD, "--max-loss", "100%")
    assert "\nNot judged at master, whose rules do not have it: default/app.\n" in done.out
    assert done.status == 1


def test_a_stale_service_of_a_dead_node_is_no_finding(command: Command) -> None:
    stale = WORKER1.replace("default/app", "default/gone").replace("10.96.18.52", "10.96.18.99")
    made = built(command, stale)
    done = command("cluster", "loss", made, *DEAD, "--max-loss", "100%", "--strict")
    assert (done.status, "default/gone" in done.out, done.err) == (0, False, "")
    # It is one if nobody says which Services there are, or if the node lives.
    command("cluster", "build", "dumps", "--node-of", "10.244.0.0/24=master", "--into", "none")
    done = command("cluster", "loss", "none", "--dead-node", "master", "--max-loss", "100%")
    assert (done.status, "default/gone" in done.out) == (1, True)
    done = command("cluster", "loss", made, "--dead-node", "master", "--max-loss", "100%")
    assert (done.status, "default/gone" in done.out) == (1, True)


def test_a_node_that_lives_unread_is_not_called_dead(command: Command) -> None:
    made = built(command, "no rules")
    done = command("cluster", "loss", made, "--dead-node", "master")
    assert "every node whose rules are known is dead and sends no flows" in done.err
    assert "\nJudged at every node whose rules are known, all of them dead: 1.\n" in done.out
    done = command("cluster", "loss", built(command, WORKER1), *DEAD, "--dead-node", "master")
    assert "warning: every node is dead and sends no flows" in done.err
    assert "\nJudged at every node, all of them dead: 2.\n" in done.out


def test_pages_say_what_is_not_judged_if_other_nodes_are_dead(command: Command) -> None:
    made = built(command, EDITED["lacks a Service"])
    dumps = ("dumps/master.txt", "dumps/worker1.txt")
    nodes = ("--node", "master,worker1", *OBJECTS)
    for asked in (("cluster", "loss", made), ("loss", *dumps, *nodes)):
        page = command(*asked, *DEAD, "--format", "html").out
        assert '"whole":false' in page
        assert re.search("If (these nodes are )?alive[,:]", page)
        page = command(*asked, "--dead", "10.244.0.3", "--format", "html").out
        assert '"whole":false' in page
        assert not re.search("If (these nodes are )?alive[,:]", page)
    whole = built(command, WORKER1, "whole")
    page = command("cluster", "loss", whole, *DEAD, "--format", "html").out
    assert ('"whole":true' in page, "nodes are alive" in page) == (True, False)
