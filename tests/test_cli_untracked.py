"""Rules that exempt one address from conntrack, and whose answers they may concern."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.captures import FIXTURES
from tests.support.commands import DUMP, OBJECTS, Command

NFT = FIXTURES / "1.36.2-nftables" / "two-node@worker1"
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
    ("address", "is_told"),
    [("10.96.18.52", True), ("198.18.0.9", True), ("10.244.1.1", False)],
)
def test_nor_do_answers_in_nftables_mode_go_to_what_is_not_the_nodes(
    command: Command, address: str, is_told: bool
) -> None:
    text = (NFT / "nft-list-ruleset.txt").read_text()
    raw = f"""table ip raw {{
        chain prerouting {{
            type filter hook prerouting priority raw; policy accept;
            ip daddr {address} notrack
        }}
    }}
    """
    asked = (command.file("dump.txt", text + raw), "--objects", str(NFT / "objects.json"))
    done = command("loss", *asked, "--node", "worker1", "--dead", "10.244.0.7", "-o", "json")
    found = {each["name"]: each["state"] for each in json.loads(done.out)["services"]}
    del found["default/app"]
    assert ({*found.values()} == {"untouched"}) is is_told


def test_what_the_node_masquerades_has_no_address_of_a_pod(command: Command) -> None:
    master = FIXTURES / "1.36.2-iptables-legacy" / "two-node"
    text = (master / "iptables-legacy-save.txt").read_text()
    for source, may_be in (("10.244.0.7", False), ("203.0.113.9", False), ("10.244.0.1", True)):
        rule = f"-A INPUT -s {source}/32 -j DROP\n-A INPUT"
        file = command.file("dump.txt", text.replace("-A INPUT", rule, 1))
        asked = (file, "--objects", str(master / "objects.json"), "--node", "master")
        done = command("trace", *asked, "--from-node", "--to", "10.96.0.1:443", "-o", "json")
        ends = {each["outcome"] for each in json.loads(done.out)["outcomes"]}
        assert ("drop" in ends) is may_be


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
