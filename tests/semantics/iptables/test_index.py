from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.iptables import targets as t
from analyzer.model.iptables.matches import Match, MatchDestination, MatchNot, MatchTcp, MatchUdp
from analyzer.model.iptables.options import Option, Range
from analyzer.model.iptables.rules import Chain, Rule, Table
from analyzer.model.packet import Packet
from analyzer.model.ternary import Ternary
from analyzer.semantics.iptables import index
from analyzer.semantics.iptables.index import ChainIndex
from analyzer.semantics.iptables.matching import match_all
from analyzer.semantics.iptables.traverse import Traversal
from analyzer.semantics.situation import Situation
from tests.support.strategies.iptables_rules import HERE
from tests.support.strategies.iptables_walkable import DEAD, known_matches, unknown_matches

ADDRESSES = [ip_address("10.0.0.1"), ip_address("10.0.0.2"), ip_address("fd00::1")]
NETWORKS = [ip_network(n) for n in ("10.0.0.1/32", "10.0.0.2/32", "10.0.0.0/24", "fd00::1/128")]
PORTS = [Range(80, 80), Range(81, 81), Range(80, 81), Range(0, 65535)]

options = st.none() | st.builds(Option, st.sampled_from(PORTS), st.booleans())
destinations = st.sampled_from(NETWORKS).map(MatchDestination)
asked: st.SearchStrategy[Match] = st.one_of(
    destinations,
    destinations.map(MatchNot),
    st.builds(MatchTcp, destination_port=options, source_port=options),
    st.builds(MatchUdp, destination_port=options, source_port=options),
    known_matches,
    unknown_matches,
)
decisions: st.SearchStrategy[t.Target | None] = st.sampled_from(
    [DEAD, t.Drop(), t.Return(), t.SetMark(1, 1), t.Jump("B"), None]
)
rule_lists = st.lists(
    st.builds(Rule, st.lists(asked, max_size=2).map(tuple), decisions, st.just(HERE), st.just("")),
    max_size=6,
)
packets = st.builds(
    Packet,
    protocol=st.sampled_from([None, "tcp", "udp"]),
    destination=st.sampled_from([None, *ADDRESSES]),
    destination_port=st.sampled_from([None, 80, 81, 82]),
)


@contextmanager
def worthwhile(least: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "WORTHWHILE", least)
        yield


@given(rule_lists, rule_lists, packets)
def test_an_index_changes_no_tree(a: list[Rule], b: list[Rule], packet: Packet) -> None:
    table = Table("ip", "nat", {"A": Chain("A", tuple(a)), "B": Chain("B", tuple(b))})
    with worthwhile(1_000):
        plain = Traversal(table).tree("A", packet)
    with worthwhile(0):
        assert Traversal(table).tree("A", packet) == plain


@given(rule_lists, packets, st.integers(0, 6))
def test_a_rule_that_is_left_out_certainly_does_not_match(
    rules: list[Rule], packet: Packet, start: int
) -> None:
    with worthwhile(0):
        found = list(ChainIndex(rules).candidates(packet, start))
    assert found == sorted(set(found) & set(range(start, len(rules))))
    for at in set(range(start, len(rules))) - set(found):
        assert match_all(rules[at].matches, packet, Situation()).known is Ternary.FALSE


def test_a_long_chain_is_looked_up_and_not_searched() -> None:
    networks = [ip_network((ip_address("10.0.0.0") + n, 32)) for n in range(1_000)]
    rules = [Rule((MatchDestination(network),), DEAD, HERE, "") for network in networks]
    packet = Packet(destination=ip_address("10.0.0.7"), destination_port=80)
    assert list(ChainIndex(rules).candidates(packet, 0)) == [7]
    unknown = Packet(destination_port=80)
    assert list(ChainIndex(rules).candidates(unknown, 998)) == [998, 999]
