"""Which ServicePort clients connect to where none is named: the one that loses most for them."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.support.captures import FIXTURES
from tests.support.client_documents import document, fails
from tests.support.commands import DUMP, OBJECTS, Command

POLICIES = FIXTURES / "1.30.3-iptables-legacy" / "policies"
GIVEN = (
    str(POLICIES / "iptables-legacy-save.txt.gz"),
    *("--objects", str(POLICIES / "objects.json.gz")),
)


@pytest.mark.parametrize(
    ("source", "node", "service"),
    [("pod", "node-a1", "pol/hints-ext-local"), ("external", "node-b1", "pol/int-local")],
)
def test_it_loses_most_on_the_clients_own_route(
    command: Command, source: str, node: str, service: str
) -> None:
    # Others lose as much or more on the routes of other clients, by Local policies.
    given = (*GIVEN, "--dead-node", node)
    found = document(command, *given, "--client", "tcp", "--from", source)
    assert [each["target"] for each in found["operations"]] == [service]
    every = [
        _fraction(route["loss"]["upper"])
        for each in json.loads(command("loss", *given, "--format", "json").out)["services"]
        for route in each["routes"]
        if route["source"] == source
        and (source != "external" or each["frontends"][route["frontend"]]["kind"] != "ClusterIP")
    ]
    assert fails(found)["tcp"][1] == max(every)


def _fraction(given: Any) -> Fraction:
    return Fraction(int(given["numerator"], 16), 1 << given["exponent"])


def test_a_client_whom_rules_single_out_may_lose_more_of_another(command: Command) -> None:
    rule = "-s 10.244.1.77/32 -p tcp -m tcp --dport 9153 -j DROP"
    text = Path(DUMP).read_text().replace("-A FORWARD ", f"-A FORWARD {rule}\n-A FORWARD ", 1)
    given = (command.file("edited.txt", text), *OBJECTS, "--node", "worker1", "--client", "tcp")
    found = document(command, *given, "--max-failure", "10%", status=1)
    assert [each["target"] for each in found["operations"]] == ["default/app"]
    networks = {"name": "kube-system/kube-dns:metrics", "networks": ["10.244.1.77/32"]}
    assert found["singled_out"] == [networks]
