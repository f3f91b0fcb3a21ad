from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from analyzer.kubeproxy.routes.trace import Question, trace
from analyzer.model.cluster import Cluster
from analyzer.model.packet import Packet
from analyzer.model.value import replace
from analyzer.parsers.iptables_save import parse
from analyzer.reports.answers import TraceAnswer
from analyzer.reports.trace_text import render, told
from analyzer.reports.unstyled import render_unstyled
from analyzer.semantics.fate import Fate
from tests.support.dumps import dump, many_endpoints, two_endpoints

POD = ip_address("10.0.0.1")
PACKET = Packet(
    protocol="tcp",
    source=ip_address("203.0.113.7"),
    destination=ip_address("10.96.0.1"),
    destination_port=80,
    in_interface="eth0",
)


def answer(text: str, packet: Packet = PACKET) -> TraceAnswer:
    found = trace([parse(text, "dump.txt")], Question(packet=packet), "ip")
    return TraceAnswer(
        cluster=Cluster().with_networks([(ip_network(POD), "worker1")]),
        node="master",
        packet=packet,
        state="NEW",
        tree=found.tree,
        ends=found.ends,
        assumptions=found.assumptions,
        diagnostics=(),
    )


def shown(given: TraceAnswer) -> list[str]:
    return render_unstyled(render(given)).splitlines()


@pytest.mark.parametrize(
    ("fate", "words"),
    [
        (Fate("endpoint", POD, 80), "10.0.0.1:80"),
        (Fate("endpoint", POD), "10.0.0.1"),
        (Fate("local", POD, 80), "the node itself, 10.0.0.1:80"),
        (Fate("local"), "the node itself"),
        (Fate("no-service", POD, 80), "10.0.0.1:80"),
        (Fate("drop"), "dropped"),
        (Fate("drop", how="policy of INPUT in table filter"), "policy of INPUT in table filter"),
        (Fate("reject", how="tcp-reset"), "rejected with tcp-reset"),
        # What iptables answers where nothing else is said.
        (Fate("reject"), "rejected with icmp-port-unreachable"),
        (Fate("unresolved"), "not known"),
    ],
)
def test_an_end_is_told_in_words(fate: Fate, words: str) -> None:
    assert words in told(fate)


def test_the_packet_that_was_asked_about_comes_first() -> None:
    head = shown(answer(dump(*two_endpoints())))[0]
    assert head == "tcp from 203.0.113.7 to 10.96.0.1:80, in by eth0, at node master"
    made_here = answer(dump(*two_endpoints()), replace(PACKET, source=None, in_interface=""))
    assert shown(made_here)[0].startswith("tcp from the node")


def test_each_end_has_a_row_with_its_share_node_and_source() -> None:
    lines = shown(answer(dump(*two_endpoints(), masquerades=False)))
    row = next(line for line in lines if "10.0.0.1:80" in line)
    assert row.split() == ["50.0%", "1/2", "10.0.0.1:80", "worker1", "kept"]


def test_packets_of_a_flow_that_is_not_new_are_no_flows() -> None:
    given = answer(dump(*two_endpoints()))
    assert "OF NEW FLOWS" in shown(given)[2]
    assert "OF PACKETS" in shown(replace(given, state="INVALID"))[2]


def test_what_the_answer_rests_on_comes_last() -> None:
    given = replace(answer(dump(*two_endpoints())), assumptions=("it never rains",))
    assert shown(given)[-1] == "  it never rains"


def test_of_very_many_ends_the_first_are_shown_unless_all_are_wanted() -> None:
    given = answer(many_endpoints(41))
    lines = shown(given)
    assert any("21 more ends; -v shows all" in line for line in lines)
    assert not any("more ends" in line for line in shown(replace(given, every=True)))
