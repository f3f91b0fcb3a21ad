"""Lines of `loss` for other programs are those of its document."""

from __future__ import annotations

import csv
import io
import json

import pytest

from analyzer.kubeproxy.generate import node_name
from tests.support.commands import Command
from tests.support.losses import IDLE, TWO, service, with_services
from tests.support.mixed_clusters import files


def lines(command: Command, *asked: str) -> list[dict[str, str]]:
    written = command("loss", *asked, "--format", "tsv").out
    return list(csv.DictReader(io.StringIO(written), delimiter="\t", quoting=csv.QUOTE_NONE))


def test_a_line_has_what_the_document_has(command: Command) -> None:
    asked = *files(command), "--dead-node", node_name(1)
    document = json.loads(command("loss", *asked, "--format", "json").out)
    told = {row["service"]: row for row in lines(command, *asked)}
    assert len(told) == len(document["services"]) == 50
    for each in document["services"]:
        row = told[each["name"]]
        assert (row["protocol"], row["state"]) == (each["protocol"], each["state"])
        worst = each["worst_loss"]
        if worst is not None:
            bounds = worst["lower"]["value"], worst["upper"]["value"]
            assert (float(row["lower"]), float(row["upper"])) == bounds
            assert row["from"] == worst["source"]
        assert int(row["endpoints"]) == len(each["endpoints"])
        assert int(row["dead"]) == sum(bool(end["dead"]) for end in each["endpoints"])
    assert {row["affinity"] for row in told.values()} == {"", "10800"}


@pytest.mark.deep
def test_the_greatest_harm_comes_first_or_what_was_asked_for(command: Command) -> None:
    asked = *files(command), "--dead-node", node_name(1)
    states = [row["state"] for row in lines(command, *asked)]
    assert states[0] == "silenced"
    assert states == sorted(states, key=["silenced", "degraded", "no-endpoints", "untouched"].index)
    names = [row["service"] for row in lines(command, *asked, "--sort", "name")]
    assert names == sorted(names)


def test_what_is_not_judged_has_its_line(command: Command) -> None:
    given = with_services(command, service("ns/gone"))
    dump = command.file("dump.txt", TWO)
    found = {row["service"]: row for row in lines(command, dump, *given, *IDLE)}
    row = found["ns/gone:http"]
    assert (row["state"], row["lower"], row["upper"]) == ("not-judged", "0.0", "1.0")
    cut = command.file("cut.txt", TWO[: TWO.index("-A KUBE-SEP-2")])
    (*_, last) = lines(command, cut, *IDLE)
    assert (last["service"], last["state"]) == ("", "not-judged")


def test_no_name_is_a_formula(command: Command) -> None:
    dump = command.file("dump.txt", TWO.replace("ns/a:http", "=cmd/a:http"))
    (row,) = lines(command, dump, *IDLE)
    assert row["service"] == "'=cmd/a:http"
