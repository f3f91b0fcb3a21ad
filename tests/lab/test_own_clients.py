from __future__ import annotations

from ipaddress import IPv4Address

import pytest

from analyzer.model.cluster import Cluster
from analyzer.model.packet import Packet
from analyzer.parsers.formats import read_ruleset
from netns_lab.own_clients import alike, own_clients
from netns_lab.plan import HostPlan, LabPlan

NODE = IPv4Address("192.168.10.11")
RULES = """*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
{rules}
COMMIT
"""
TO = "-A OUTPUT {}-d 10.96.0.1/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination {}:8080"


def plan() -> LabPlan:
    pods = HostPlan(name="pods", addresses=(), endpoints=(), networks=())
    return LabPlan(node="node", node_addresses=(NODE,), own_pods=pods, others=())


def given(*rules: str) -> bytes:
    return RULES.format(rules="\n".join(rules)).encode()


def clients(*rules: str) -> tuple[IPv4Address, ...]:
    found = own_clients(plan(), Cluster(), [read_ruleset(given(*rules), "dump")])
    return tuple(each for each in found if isinstance(each, IPv4Address))


def is_alike(*rules: str) -> bool:
    packet = Packet(
        protocol="tcp",
        source=NODE,
        destination=IPv4Address("10.96.0.1"),
        destination_port=80,
        in_interface="",
    )
    other = NODE + 1
    return alike([read_ruleset(given(*rules), "dump")], packet, other, (NODE, other))


def test_the_node_is_as_many_clients_as_xt_recent_remembers() -> None:
    found = clients(TO.format("", "10.244.0.1"))
    assert len(set(found)) == 99
    assert NODE not in found


def test_no_address_is_taken_that_a_network_or_range_tells_from_the_nodes() -> None:
    within = "-A OUTPUT -s 192.168.10.8/29 -j RETURN"
    assert set(clients(within)) <= {NODE + at for at in range(-3, 5)} - {NODE}
    without = "-A OUTPUT -m iprange --src-range 192.168.10.12-192.168.10.20 -j RETURN"
    assert clients(without)
    assert not {NODE + at for at in range(1, 10)} & set(clients(without))


@pytest.mark.parametrize(
    "rule",
    [
        "-A OUTPUT -s 192.0.10.0/255.0.255.0 -j RETURN",
        "-A OUTPUT -m set --match-set a src -j RETURN",
    ],
)
def test_none_is_taken_where_rules_tell_sources_apart_in_other_ways(rule: str) -> None:
    assert not clients(rule)


def test_a_rule_for_the_nodes_address_alone_is_seen_where_flows_meet_it() -> None:
    assert is_alike(TO.format("", "10.244.0.1"))
    assert is_alike("-A OUTPUT -s 192.168.10.11/32 -d 10.96.0.9/32 -j RETURN", TO.format("", NODE))
    assert not is_alike(TO.format("-s 192.168.10.11/32 ", "10.244.0.1"))
