"""What is assumed beyond the rules: it decides its matches, and no others, and is told."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.iptables import matches as m
from analyzer.model.iptables.options import Option
from analyzer.model.iptables.rules import Table
from analyzer.model.packet import Packet
from analyzer.model.ternary import Ternary
from analyzer.semantics.assumed import ASSUMPTIONS, BY_NAME, DEFAULTS, Assumed, told
from analyzer.semantics.iptables.matching import evaluate_match
from analyzer.semantics.situation import Situation
from tests.support.agreement.iptables_table import (
    agrees_with_the_naive_interpreter,
    bounds_are_the_extremes_of_an_adversary,
    is_dead,
    walk,
)
from tests.support.odds import bounds
from tests.support.strategies.iptables_walkable import walked_tables

NODE, SERVICE, POD = map(ip_address, ("172.16.0.1", "10.2.3.4", "10.1.0.2"))
PACKET: Final = Packet(protocol="tcp", source=POD, destination=SERVICE, in_interface="eth0")
TO_CLUSTER_IP: Final = Packet(destination=SERVICE, cluster_ip=SERVICE)
TRUE, FALSE, UNKNOWN = Ternary.TRUE, Ternary.FALSE, Ternary.UNKNOWN
LOCAL: Final = m.MatchAddrtype(destination_type=Option(("LOCAL",)))
#: What each value means to the naive interpreter.
FACTS: Final = {
    ("reverse-path", "pass"): ("reply leaves where it came in", True),
    ("reverse-path", "fail"): ("reply leaves where it came in", False),
    ("limits", "under"): ("tokens left", True),
    ("limits", "over"): ("tokens left", False),
    ("policy", "none"): ("encrypted", False),
    ("socket", "none"): ("socket waits", False),
}
everything = st.fixed_dictionaries(
    {name: st.sampled_from([*BY_NAME[name].sentences]) for name in {n for n, _ in FACTS}}
)
tables = walked_tables(unknown_match=False, unknown_target=False, node_match=True)


def facts(assumed: Mapping[str, str]) -> dict[str, bool]:
    return dict(FACTS[each] for each in assumed.items())


@given(tables, everything)
def test_with_all_assumed_it_is_the_naive_interpreter_that_knows_it(
    made: Table, assumed: dict[str, str]
) -> None:
    agrees_with_the_naive_interpreter(made, PACKET, assumed, facts(assumed))


@given(walked_tables(unknown_target=False, node_match=True))
def test_with_nothing_assumed_bounds_are_what_an_adversary_can_bring_about(made: Table) -> None:
    bounds_are_the_extremes_of_an_adversary(made)


@given(walked_tables(node_match=True), everything, st.sets(st.sampled_from([*DEFAULTS])))
def test_each_answer_lies_within_the_bounds_of_nothing_assumed(
    made: Table, assumed: dict[str, str], unknown: set[str]
) -> None:
    some = {name: of for name, of in assumed.items() if name not in unknown}
    nothing = bounds(walk(made, PACKET, {}), is_dead)
    found = bounds(walk(made, PACKET, some), is_dead)
    assert nothing.lower <= found.lower
    assert found.upper <= nothing.upper


def test_a_cluster_ip_is_no_address_of_the_node() -> None:
    assumed = Assumed(DEFAULTS)
    situation = Situation(assumed=assumed)
    assert evaluate_match(LOCAL, TO_CLUSTER_IP, situation).known is FALSE
    assert assumed.used == {"cluster-ip"}
    assert evaluate_match(LOCAL, TO_CLUSTER_IP, Situation(assumed=Assumed())).known is UNKNOWN
    assert evaluate_match(LOCAL, TO_CLUSTER_IP, Situation()).known is UNKNOWN


def test_where_the_node_s_addresses_are_known_nothing_is_assumed_of_cluster_ips() -> None:
    for own, want in ((NODE, FALSE), (SERVICE, TRUE)):
        assumed = Assumed(DEFAULTS)
        situation = Situation(local_addresses=frozenset({own}), assumed=assumed)
        assert evaluate_match(LOCAL, TO_CLUSTER_IP, situation).known is want
        assert assumed.used == assumed.wanted == set()


def test_a_flow_that_was_sent_on_goes_to_a_cluster_ip_no_more() -> None:
    assumed = Assumed(DEFAULTS)
    sent = Packet(destination=POD, cluster_ip=SERVICE)
    assert evaluate_match(LOCAL, sent, Situation(assumed=assumed)).known is UNKNOWN
    assert assumed.used == set()
    assert assumed.wanted == {"cluster-ip"}


def test_every_assumption_has_its_own_sentence_and_a_way_to_assume_nothing() -> None:
    sentences = [each for one in ASSUMPTIONS for each in one.sentences.values()]
    assert len(sentences) == len(set(sentences))
    for one in ASSUMPTIONS:
        assert one.values == (*one.sentences, "unknown")
        assert DEFAULTS[one.name] == one.default == one.values[0]
    assert told([*DEFAULTS], DEFAULTS) == tuple(e.sentences[e.default] for e in ASSUMPTIONS)
