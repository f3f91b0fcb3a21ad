"""Rules of another node that end flows are named, with that node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.lab.running import lab_run
from tests.support.lab.two_nodes import Asked, cluster

pytestmark = pytest.mark.lab

#: node1's own rules beside kube-proxy's. They drop what pods of node0 send, and reject what comes
#: masqueraded by it.
NFT: Final = """
table ip guard {
    chain forward {
        type filter hook forward priority 5; policy accept;
        ip saddr 10.244.0.0/16 ip daddr 10.244.1.3 drop
        ip saddr 192.168.9.10 ip daddr 10.244.1.3 reject
    }
}
"""
IPTABLES: Final = (
    "-A FORWARD -s 10.244.0.0/16 -d 10.244.1.3/32 -j DROP",
    "-A FORWARD -s 192.168.9.10/32 -d 10.244.1.3/32 -j REJECT --reject-with icmp-port-unreachable",
)
#: How the rules above are named, the one that drops first.
NAMED: Final = {
    "nft": (
        "node node1, ip guard forward: ip saddr 10.244.0.0/16 ip daddr 10.244.1.3 drop",
        "node node1, ip guard forward: ip saddr 192.168.9.10 ip daddr 10.244.1.3 "
        "reject with icmp type port-unreachable",
    ),
    "iptables": tuple(f"node node1, filter: {rule}" for rule in IPTABLES),
}


@pytest.fixture
def given(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


def here(kind: str) -> str:
    return cluster().nft if kind == "nft" else cluster().dump


def there(kind: str, iptables: tuple[str, ...] = IPTABLES, nft: str = NFT) -> str:
    """Return the dump of node1, with these rules beside kube-proxy's."""
    made = replace(cluster(), node="node1")
    if kind == "nft":
        return made.nft + nft
    rows = made.dump.splitlines()
    at = next(at for at, row in enumerate(rows) if row.startswith("-A FORWARD "))
    return "\n".join([*rows[:at], *iptables, *rows[at:]]) + "\n"


def ended(found: dict[str, Any]) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    for each in found["measurements"]:
        if each["rejected"] + each["unaccounted"]:
            yield (each["frontend"].split()[0], each["source"]), each


@pytest.mark.parametrize(
    ("own", "other"),
    [("nft", "nft"), ("nft", "iptables"), ("iptables", "nft"), ("iptables", "iptables")],
)
def test_the_rule_of_another_node_is_named_by_the_source_that_it_sees(
    given: Asked, own: str, other: str
) -> None:
    words = given.words(here(own), there(other))
    status, found, errors = lab_run(*words, "--from", "pod,node,external", "--flows", "100")
    assert (status, found["agrees"]) == (0, True), errors
    by_route = dict(ended(found))
    assert {kind for kind, _ in by_route} == {"ClusterIP", "NodePort"}
    assert {source for _, source in by_route} == {"pod", "node", "external"}
    drops, rejects = NAMED[other]
    for (kind, source), each in by_route.items():
        is_masqueraded = (kind, source) != ("ClusterIP", "pod")
        rule = rejects if is_masqueraded else drops
        if (own, other) == ("iptables", "iptables"):
            assert [told["rule"] for told in each["ended_by"] if told["packets"]] == [rule]
            assert each["ended_at"] is None
        else:
            assert (each["ended_by"], each["ended_at"]) == (None, rule)


def test_equal_rules_of_two_nodes_are_told_apart(given: Asked) -> None:
    """Each drops half of what comes to it: a text alone would stand for both."""
    half = "-A FORWARD -d 10.244.1.3/32 -m statistic --mode random --probability 0.50000000000"
    rule = f"{half} -j DROP"
    rows = cluster().dump.splitlines()
    at = next(at for at, row in enumerate(rows) if row.startswith("-A FORWARD "))
    own = "\n".join([*rows[:at], rule, *rows[at:]]) + "\n"
    words = given.words(own, there("iptables", (rule,)))
    status, found, errors = lab_run(*words, "--from", "pod", "--flows", "400")
    assert (status, found["agrees"]) == (0, True), errors
    for _, each in ended(found):
        counted = {told["rule"]: told["packets"] for told in each["ended_by"]}
        assert set(counted) == {f"node node{at}, filter: {rule}" for at in (0, 1)}
        assert sum(counted.values()) == each["unaccounted"]


def test_a_policy_of_another_node_is_named(given: Asked) -> None:
    policy = NFT.replace("accept", "drop").splitlines()
    nft = "\n".join([line for line in policy if not line.endswith((" drop", "reject"))]) + "\n"
    words = given.words(here("nft"), there("nft", nft=nft))
    status, found, errors = lab_run(*words, "--from", "pod", "--flows", "40")
    assert (status, found["agrees"]) == (0, True), errors
    rules = {each["ended_at"] for _, each in ended(found)}
    assert rules == {"node node1, ip guard forward: policy drop"}
