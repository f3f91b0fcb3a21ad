"""Rules that exempt one address from conntrack, and whose answers they may concern."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.commands import DUMP, OBJECTS, Command

RAW = "*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -d {}/32 -j NOTRACK\nCOMMIT\n# Completed\n"


def states(command: Command, address: str, *given: str) -> dict[str, str]:
    file = command.file("dump.txt", Path(DUMP).read_text() + RAW.format(address))
    done = command("loss", file, *OBJECTS, *given, "--dead", "10.244.0.7", "-o", "json")
    return {each["name"]: each["state"] for each in json.loads(done.out)["services"]}


def test_no_answer_goes_to_another_cluster_ip(command: Command) -> None:
    found = states(command, "10.96.18.52", "--node", "worker1")
    assert found.pop("default/app") != "untouched"
    assert {*found.values()} == {"untouched"}


@pytest.mark.parametrize(
    ("address", "given"),
    [
        # It may be that of a device, which masqueraded flows have.
        ("10.244.1.1", ("--node", "worker1")),
        # As NodeLocal DNSCache has the ClusterIP of DNS.
        ("10.96.0.10", ("--node-ip", "192.168.0.11,10.96.0.10")),
    ],
)
def test_answers_may_go_to_an_address_of_the_node(
    command: Command, address: str, given: tuple[str, ...]
) -> None:
    found = states(command, address, *given)
    assert found["default/kubernetes:https"] in {"unknown", "degraded"}
