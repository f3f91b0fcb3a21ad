"""What answers about a cluster say of Services that some node, or every one, does not show."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import DUMP, OBJECTS, Command
from tests.support.dumps import FILTER, dump, two_endpoints

pytest.importorskip("duckdb")
TEXT = Path(DUMP).read_text()
WITHOUT_APP = "".join(row for row in TEXT.splitlines(keepends=True) if "default/app" not in row)
#: The chains are there, and no rule jumps to them.
NO_JUMP = "".join(
    row for row in TEXT.splitlines(keepends=True) if "default/app cluster IP" not in row
)
DEAD = ("--dead", "10.244.0.3")  # of kube-dns


def built(command: Command, texts: dict[str, str], *objects: str) -> str:
    """Build a store of these dumps, and return its folder."""
    (command.folder / "dumps").mkdir(exist_ok=True)
    for name, text in texts.items():
        command.file(f"dumps/{name}.txt", text)
    done = command("cluster", "build", "dumps", *objects, "--into", "made", "--engine", "serial")
    assert done.status == 0, done.err
    return "made"


def not_judged(command: Command, *asked: str) -> list[str]:
    found: list[str] = json.loads(command("cluster", *asked, "-o", "json").out)["not_judged"]
    return found


@pytest.mark.parametrize("asked", [("loss", *DEAD), ("whatif",)])
def test_of_a_service_that_some_rules_lack_it_says_where(
    command: Command, asked: tuple[str, ...]
) -> None:
    verb, *dead = asked
    made = built(command, {"master": TEXT, "worker1": WITHOUT_APP}, *OBJECTS)
    done = command("cluster", verb, made, *dead, "--max-loss", "100%")
    assert "\nNot judged at worker1, whose rules do not have it: default/app.\n" in done.out
    assert "not understood" not in done.out
    assert done.status == 1
    assert not_judged(command, verb, made, *dead) == ["default/app"]


def test_what_rules_lack_of_other_services_breaks_no_threshold(command: Command) -> None:
    made = built(command, {"master": TEXT, "worker1": WITHOUT_APP}, *OBJECTS)
    command.file("worker1.txt", WITHOUT_APP)
    predicted = ("--from-objects", OBJECTS[1], "--kube-proxy", "1.36", "--mode", "iptables")
    for asked in (
        ("cluster", "loss", made, *DEAD),
        ("cluster", "whatif", made),
        ("loss", "worker1.txt", "--node", "worker1", *predicted, *DEAD),
    ):
        dns = (*asked, "--service", "kube-dns")
        done = command(*dns, "--max-loss", "100%")
        assert (done.status, "default/app" in done.out) == (0, False)
        assert json.loads(command(*dns, "-o", "json").out)["not_judged"] == []
        app = command(*asked, "--service", "app", "--max-loss", "100%")
        assert (app.status, "whose rules do not have it: default/app." in app.out) == (1, True)
    assert command("cluster", "loss", made, *DEAD, "-n", "kube-system", "--strict").status == 0


def test_an_odd_rule_of_another_service_breaks_no_threshold(command: Command) -> None:
    odd = TEXT.replace("-d 10.96.18.52/32 -p tcp", "-d 10.96.18.52/31 -p tcp")
    command.file("odd.txt", odd)
    for verb in (("loss", "odd.txt", *DEAD), ("whatif", "odd.txt", *OBJECTS)):
        done = command(*verb, "--max-loss", "100%")
        assert (done.status, "rules are not understood: default/app." in done.out) == (1, True)
        done = command(*verb, "--max-loss", "100%", "--service", "kube-dns")
        assert (done.status, "not understood: " in done.out) == (0, False)


def test_what_is_dead_may_be_of_another_service(command: Command) -> None:
    made = built(command, {"master": TEXT, "worker1": TEXT}, *OBJECTS)
    done = command("cluster", "loss", made, *DEAD, "--service", "app")
    assert (done.status, "\n1 ServicePort" in done.out, done.err) == (0, True, "")


def test_the_mean_is_over_nodes_whose_rules_have_the_service(command: Command) -> None:
    """Not those that lack it: what their clients lose is not known, and was counted as nothing."""
    places = [word for name in ("0.0/24=a", "1.0/24=b") for word in ("--node-of", f"10.244.{name}")]
    made = built(command, {"a": TEXT, "b": TEXT, "c": WITHOUT_APP}, *places)

    def worst(*narrowed: str) -> dict[str, Any]:
        asked = ("cluster", "whatif", made, *narrowed, "-o", "json")
        services = json.loads(command(*asked).out)["services"]
        (app,) = (each for each in services if each["name"] == "default/app")
        found: dict[str, Any] = app["worst_single"]
        return found

    assert worst()["mean_over_nodes"] == {"lower": 0.5, "upper": 0.5, "nodes": 1}
    text = command("cluster", "whatif", made, "--service", "app").out
    assert re.search(r"default/app .* a +50\.0% +50\.0%\n", text)
    loss = ("cluster", "loss", made, "--service", "app", "--dead-node")
    assert re.search(r"default/app .* b +50\.0%  every route\n", command(*loss, "a").out)
    # If no living node has it, there is no mean.
    made = built(command, {"a": TEXT, "b": WITHOUT_APP, "c": WITHOUT_APP}, *places)
    assert worst("--service", "app")["mean_over_nodes"] is None
    done = command(*loss, "a", "--max-loss", "100%")
    assert (done.status, "\n0 ServicePorts. Not everything is judged" in done.out) == (1, True)
    assert "No new flow" not in done.out


def test_of_an_ip_version_that_some_rules_lack_it_says_where(command: Command) -> None:
    six = dump(*two_endpoints("[fd00::1]:80", "[fd00:1::1]:80")) + FILTER
    six = six.replace("10.96.0.1/32", "fd00:96::1/128")
    texts = {
        "worker1-iptables-save": TEXT,
        "master-iptables-save": TEXT,
        "master-ip6tables-save": f"# Generated by ip6tables-save v1.8.9\n{six}",
    }
    made = built(command, texts)
    done = command("cluster", "loss", made, *DEAD)
    assert "since no rules of that IP version are known there: IPv6 at worker1.\n" in done.out
    assert "not understood" not in done.out
    assert not_judged(command, "loss", made, *DEAD) == ["IPv6 at worker1"]


@pytest.mark.parametrize(
    ("text", "objects", "says"),
    [
        (WITHOUT_APP, OBJECTS, "1 ServicePort of the objects without a rule in the dump"),
        (NO_JUMP, OBJECTS, "1 ServicePort of the objects without a rule in the dump"),
        (NO_JUMP, [], "1 ServicePort with chains that no rule jumps to"),
    ],
)
def test_a_service_that_no_rules_lead_to_is_not_judged(
    command: Command, text: str, objects: list[str], says: str
) -> None:
    made = built(command, {"master": text, "worker1": text}, *objects)
    done = command("cluster", "loss", made, *DEAD, "--max-loss", "100%")
    assert (done.status, f"\nNot judged: {says} (default/app).\n" in done.out) == (1, True)
    assert not_judged(command, "loss", made, *DEAD) == ["default/app"]
    # Nobody asks about it.
    asked = ("loss", made, *DEAD, "--service", "kube-dns")
    assert not_judged(command, *asked) == []
    assert command("cluster", *asked, "--max-loss", "100%").status == 0
    where = OBJECTS if not objects else ()
    done = command("cluster", "whatif", made, *where, "--max-loss", "100%")
    assert (done.status, "\nNot judged: 1 ServicePort " in done.out) == (1, True)


def test_of_a_service_that_no_rules_lead_to_there_is_no_answer(command: Command) -> None:
    made = built(command, {"worker1": WITHOUT_APP}, *OBJECTS)
    done = command("cluster", "loss", made, *DEAD, "--service", "app")
    assert (done.status, done.out) == (2, "")
    assert "no node's rules have the Service" in done.err
