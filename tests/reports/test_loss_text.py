"""`loss` for people: what the first lines say is what the rest and the document say."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest

from analyzer.kubeproxy.generate import iptables_save, node_name, services
from analyzer.reports import loss_overview
from tests.support.commands import DUMP, OBJECTS, Command
from tests.support.mixed_clusters import files

DEAD = node_name(1)
_WORDS = {
    "silenced": "total loss",
    "degraded": "partial loss",
    "untouched": "untouched",
    "unknown": "unknown",
    "no-endpoints": "without endpoints",
}


def document(command: Command, *asked: str) -> Any:
    return json.loads(command("loss", *asked, "--format", "json").out)


def text(command: Command, *asked: str) -> list[str]:
    done = command("loss", *asked)
    assert done.status == 0, done.err
    return done.out.splitlines()


@pytest.mark.parametrize("number", [50, 200])
def test_what_is_told_is_short_whatever_the_number_of_services(
    command: Command, number: int
) -> None:
    shown = text(command, *files(command, number), "--dead-node", DEAD)
    assert shown.index("") <= 10
    assert len(shown) <= 28
    assert "What now" in shown[:20]


def test_the_totals_are_those_of_the_document(command: Command) -> None:
    asked = *files(command), "--dead-node", DEAD
    counts = Counter(each["state"] for each in document(command, *asked)["services"])
    told = f"50 ServicePorts: {counts['untouched']} untouched, "
    (line,) = [line for line in text(command, *asked) if line.startswith(told)]
    for state, number in counts.items():
        assert f"{number} {_WORDS[state]}" in line


def test_numbers_of_thousands_are_written_alike(command: Command) -> None:
    plain = iptables_save(list(services(1_100, endpoints=(1, 2), nodes=2)))
    shown = text(command, command.file("dump.txt", plain), "--dead", "10.0.0.0/24")
    plainly = " ".join(line for line in shown if not line.startswith("conntrack "))
    numbers = re.findall(r"(?<![\d.:-])\d{4,}", plainly)
    assert numbers == []
    assert any(line.startswith("1,100 ServicePorts: ") for line in shown)


def test_the_summary_has_a_line_for_each_service_port_hit_or_not(command: Command) -> None:
    asked = *files(command), "--dead-node", DEAD
    found = document(command, *asked)["services"]
    shown = text(command, *asked, "--summary")
    rows = shown[shown.index("") + 2 :]
    rows = rows[: rows.index("")]
    assert len(rows) == 50
    states = {row.split()[0]: row for row in rows}
    for each in found:
        assert _WORDS[each["state"]] in states[each["name"]]
    harm = [next(at for at, word in enumerate(_WORDS.values()) if word in row) for row in rows]
    assert harm[0] == 0
    assert [at for at in harm if at < 2] == sorted(at for at in harm if at < 2)


def test_what_is_not_shown_is_counted(command: Command) -> None:
    asked = *files(command), "--dead-node", DEAD
    found = document(command, *asked)["services"]
    hit = [e for e in found if e["worst_loss"] and e["worst_loss"]["upper"]["value"]]
    shown = text(command, *asked)
    rows = [line for line in shown if re.search(r"\d of \d", line)]
    (more,) = [line for line in shown if "more ServicePorts, none worse: --summary." in line]
    assert int(more.split()[0]) + len(rows) == len(hit)
    partial = sum(e["state"] == "degraded" for e in hit)
    (named,) = [line for line in shown if line.startswith("Partial loss: ")]
    assert f" and {partial - 3} more." in named
    assert any(line.endswith(" All names: --summary.") for line in shown)


def test_all_shows_every_endpoint_of_what_is_hit(command: Command) -> None:
    asked = *files(command), "--dead-node", DEAD
    shown = "\n".join(text(command, *asked, "--all"))
    for each in document(command, *asked)["services"]:
        if each["worst_loss"] is None or not each["worst_loss"]["upper"]["value"]:
            continue
        for endpoint in each["endpoints"]:
            assert f"{endpoint['address']}:{endpoint['port']}" in shown


def test_what_was_asked_for_is_shown_with_its_endpoints(command: Command) -> None:
    asked = DUMP, *OBJECTS, "--dead-node", "master"
    for more in (["--service", "kube-dns"], ["--namespace", "kube-system"], ["--all"]):
        assert re.search(
            r"^ +10.244.0.3:53 +master +1/2 +50.0% +DEAD$",
            "\n".join(text(command, *asked, *more)),
            re.MULTILINE,
        )


def test_the_ports_of_a_service_are_named_as_one(command: Command) -> None:
    shown = text(command, DUMP, *OBJECTS, "--dead-node", "master")
    assert shown[2:4] == [
        "Total loss: default/kubernetes:https.",
        "Partial loss: default/app, kube-system/kube-dns (3 ports).",
    ]


def test_summary_and_all_exclude_each_other(command: Command) -> None:
    done = command("loss", DUMP, *OBJECTS, "--dead-node", "master", "--summary", "--all")
    assert done.status == 2


@pytest.mark.deep
@pytest.mark.parametrize("all_", [[], ["--all"]])
def test_the_overview_tells_what_each_node_would_cost(command: Command, all_: list[str]) -> None:
    given = files(command, 16)
    shown = text(command, *given, *all_)
    found = re.findall(
        r"^--dead-(node|zone)  (\S+) +[\d,]+ addresse?s? +(\S+)%  (\S+)",
        "\n".join(shown),
        re.MULTILINE,
    )
    assert len(found) == (13 if all_ else 11)
    assert ("2 more nodes with as many endpoints or fewer: --all" in shown) == (not all_)
    for kind, name, share, service in found:
        of = document(command, *given, f"--dead-{kind}", name)["services"]
        worst = max(each["worst_loss"]["upper"]["value"] for each in of if each["worst_loss"])
        assert share == f"{100 * worst:.1f}"
        (named,) = [each for each in of if each["name"] == service]
        assert named["worst_loss"]["upper"]["value"] == worst


def test_the_overview_of_many_endpoints_does_not_let_people_wait(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss_overview, "_MOST_JUDGED", 3)
    shown = text(command, *files(command, 16))
    assert "What the death of each would cost: --dead-node NAME, or --all" in shown
    assert not any("WORST LOSS" in line for line in shown)
    assert any("WORST LOSS" in line for line in text(command, *files(command, 16), "--all"))
