from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from analyzer.model.addresses import Address
from analyzer.model.packet import Packet
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.assumed import DEFAULTS, Assumed
from analyzer.semantics.situation import Situation

NODE, POD = ip_address("172.16.0.1"), ip_address("10.1.0.1")
LOOPBACK, LOOPBACK6 = ip_address("127.1.2.3"), ip_address("::1")
SERVICE = ip_address("10.96.0.1")
ANSWER = Packet(is_answer=True, to_node=True)
KNOWN, STRANGE = Situation(local_addresses=frozenset({NODE})), Situation()


@pytest.mark.parametrize("situation", [KNOWN, STRANGE])
def test_loopback_is_the_nodes_own_whatever_else_is(situation: Situation) -> None:
    assert situation.is_own(LOOPBACK) is Ternary.TRUE
    assert situation.is_own(LOOPBACK6) is Ternary.TRUE


def test_other_addresses_are_the_nodes_own_where_these_are_known() -> None:
    assert KNOWN.is_own(NODE) is Ternary.TRUE
    assert KNOWN.is_own(POD) is Ternary.FALSE
    assert STRANGE.is_own(POD) is Ternary.UNKNOWN


def test_a_node_without_addresses_is_not_one_of_unknown_addresses() -> None:
    assert Situation(local_addresses=frozenset()).is_own(POD) is Ternary.FALSE


def test_an_unknown_address_may_be_the_nodes_own() -> None:
    assert KNOWN.is_own(None) is Ternary.UNKNOWN


@pytest.mark.parametrize(
    ("situation", "answer", "to", "goes"),
    [
        (KNOWN, ANSWER, SERVICE, Ternary.FALSE),
        (STRANGE, ANSWER, SERVICE, Ternary.UNKNOWN),
        (replace(STRANGE, assumed=Assumed(DEFAULTS)), ANSWER, SERVICE, Ternary.FALSE),
        # A node may have it: NodeLocal DNSCache has that of DNS.
        (Situation(local_addresses=frozenset({SERVICE})), ANSWER, SERVICE, Ternary.UNKNOWN),
        (KNOWN, ANSWER, POD, Ternary.UNKNOWN),
        (KNOWN, Packet(to_node=True), SERVICE, Ternary.UNKNOWN),
        (KNOWN, Packet(is_answer=True), SERVICE, Ternary.UNKNOWN),
    ],
)
def test_answers_to_masqueraded_flows_go_to_no_cluster_ip(
    situation: Situation, answer: Packet, to: Address, goes: Ternary
) -> None:
    known = replace(situation, cluster_ips=lambda: {SERVICE})
    assert known.goes_to(answer, ip_network(to)) is goes
    wide = ip_network(f"{to}/24", strict=False)
    assert known.goes_to(answer, wide) is Ternary.UNKNOWN


def test_destination_and_source_are_told_apart() -> None:
    packet = Packet(source=NODE, destination=POD)
    assert KNOWN.is_local(packet) is Ternary.FALSE
    assert KNOWN.is_from_node(packet) is Ternary.TRUE


@pytest.mark.parametrize("known", [True, False])
def test_what_is_said_of_the_packet_counts_more_than_its_addresses(known: bool) -> None:
    packet = Packet(source=POD, destination=POD, to_node=known, from_node=not known)
    assert KNOWN.is_local(packet) is Ternary.of(known)
    assert KNOWN.is_from_node(packet) is Ternary.of(not known)
