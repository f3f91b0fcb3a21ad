"""What a table drops that a dump lacks is not known: no threshold passes, and that is said."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.commands import DUMP, OBJECTS, Command

TEXT = Path(DUMP).read_text()
PARTS = TEXT.split("# Generated")
FILTER, MANGLE, NAT = (f"# Generated{part}" for part in PARTS[1:])
ASKED = (*OBJECTS, "--node", "worker1")
DEAD = ("--dead", "10.244.0.7", "--max-loss", "60%")
SAYS = "Not in the dump: table filter. What its rules drop is not known, and not counted."


def given(command: Command, text: str) -> tuple[str, ...]:
    return (command.file("dump.txt", text), *ASKED)


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        (NAT, "table filter"),
        (MANGLE + NAT, "table filter"),
        # As `head -n` leaves it: nothing but its last line shows that no table follows.
        (NAT + FILTER[: FILTER.index("# Completed")], "what may follow table filter"),
        (NAT + FILTER[: FILTER.index("pleted")], "what may follow table filter"),
        (NAT + FILTER + MANGLE[: MANGLE.index("*mangle")], "what may follow table filter"),
        (NAT + FILTER + MANGLE[: len("# Gene")], "what may follow table filter"),
    ],
)
def test_no_threshold_passes_without_all_tables(command: Command, text: str, missing: str) -> None:
    asked = given(command, text)
    done = command("loss", *asked, *DEAD)
    assert done.status == 1
    assert f"Not in the dump: {missing}." in done.out
    assert "pass the whole output of iptables-save" in done.err
    assert "default/app   tcp    1 of 2 dead                 1/2  50.0%  partial loss" in done.out
    assert command("services", *asked, "--strict").status == 3
    for verb in (
        ("whatif", "--depth", "1", "--max-loss", "100%"),
        ("client", "--client", "tcp", "--service", "default/app", "--max-failure", "100%"),
    ):
        assert command(verb[0], *given(command, TEXT), *verb[1:]).status == 0
        assert command(verb[0], *given(command, text), *verb[1:]).status == 1


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        NAT + FILTER,
        re.sub("(?m)^#.*\n", "", TEXT),
        re.sub("(?m)^# Completed.*$", "#", TEXT),
        TEXT.rstrip(),
        TEXT.replace("\n", "\r\n"),
        TEXT + "*raw\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n",  # by hand
    ],
)
def test_all_tables_of_kube_proxy_are_enough(command: Command, text: str) -> None:
    done = command("loss", *given(command, text), *DEAD)
    assert (done.status, done.err, "Not in the dump" in done.out) == (0, "", False)


def test_tables_of_one_node_may_be_in_several_dumps(command: Command) -> None:
    nat = command.file("nat.txt", NAT)
    assert command("loss", nat, command.file("filter.txt", FILTER), *ASKED, *DEAD).status == 0


def test_what_nat_sends_to_the_dead_needs_no_other_table(command: Command) -> None:
    done = command("loss", *given(command, NAT), *DEAD, "--count", "dead")
    assert (done.status, SAYS in done.out) == (0, True)
    asked = (*given(command, NAT), "--dead", "10.244.0.7")
    assert json.loads(command("loss", *asked, "-o", "json").out)["cut"] is True
    done = command("loss", *asked, "-o", "json", "--count", "dead")
    assert json.loads(done.out)["cut"] is False


def test_dumps_of_a_cluster_need_all_tables_too(command: Command) -> None:
    pytest.importorskip("duckdb")
    (command.folder / "dumps").mkdir()
    for node, text in (("worker1", TEXT), ("master", NAT)):
        command.file(f"dumps/{node}.txt", text)
    build = ("cluster", "build", "dumps", *OBJECTS, "--into", "made", "--engine", "serial")
    assert command(*build).status == 0
    done = command("cluster", "loss", "made", *DEAD)
    assert done.status == 1
    assert "Not in the dump: table filter of some nodes." in done.out
    assert command("cluster", "loss", "made", *DEAD, "--count", "dead").status == 0


def test_a_table_that_one_of_two_dumps_lacks_leaves_open_what_differs(command: Command) -> None:
    whole, nat = command.file("whole.txt", NAT + FILTER), command.file("nat.txt", NAT)
    done = command("diff", whole, nat, *ASKED)
    assert (done.status, "No Service changes" in done.out) == (1, False)
    assert "Not in both dumps: table filter. What its rules drop may differ." in done.out
    assert "Undetermined: not all rules are in both dumps." in done.out
    assert command("diff", nat, nat, *ASKED).status == 0
    assert command("diff", whole, whole, *ASKED).status == 0
