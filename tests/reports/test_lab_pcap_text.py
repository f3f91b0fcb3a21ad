"""What ``lab run --pcap`` tells people of flows of which nothing is said, and of witnesses."""

from __future__ import annotations

import pytest

from analyzer.failure.agreement import judge
from analyzer.model.value import replace
from analyzer.reports.lab_pcap_answer import LabPcapAnswer
from analyzer.reports.lab_pcap_text import render
from analyzer.reports.terminal import render_terminal
from analyzer.reports.unstyled import render_unstyled
from tests.support.pcap_answer import PCAP
from tests.support.phases_answer import DEAD


def _text(answer: LabPcapAnswer) -> str:
    return render_unstyled(render(answer))


def test_flows_that_were_not_judged_stand_beside_the_verdict() -> None:
    assert "; up to 3 flows to Services not judged (" in _text(PCAP)
    judged = tuple(each for each in PCAP.passed_over if each.judged)
    assert "not judged" not in _text(replace(PCAP, passed_over=judged))


@pytest.mark.parametrize("name", ["counters", "conntrack"])
def test_a_witness_that_counted_otherwise_makes_it_disagree(name: str) -> None:
    assert PCAP.agrees
    other = replace(PCAP, **{name: 2})
    assert not other.agrees
    assert "DISAGREES" in _text(other)
    assert "off by 2 from what was seen" in _text(other)


def test_nothing_measured_agrees_with_nothing() -> None:
    assert not replace(PCAP, verdicts=()).agrees


def test_packets_sum_to_those_of_the_capture() -> None:
    assert "20 packets: 5 began flows that were replayed, 15 did not." in _text(PCAP)


def test_where_each_flow_ended_is_told() -> None:
    text = _text(PCAP)
    for said in ("10.0.0.2:80 dead", "rejected", "dropped", "unchanged", "a refusal", "an answer"):
        assert said in text


def test_of_what_the_node_did_not_send_nothing_is_said_of_what_its_client_saw() -> None:
    (first, *_) = PCAP.flows
    for outcome, shown in (("rejected", "rejected "), ("ended", "rejected or dropped ")):
        flow = replace(first, outcome=outcome, endpoint=None, answered=None)
        (row,) = (r for r in _text(replace(PCAP, flows=(flow,))).splitlines() if "(ns/a" in r)
        assert shown in row
        assert row.endswith(" -")


def test_a_capture_that_is_not_whole_is_said_to_be() -> None:
    assert "The capture is incomplete: it ends in the middle of packet 21." in _text(PCAP)


def test_of_many_flows_some_are_shown_and_the_rest_is_counted() -> None:
    many = replace(PCAP, flows=PCAP.flows * 9)
    assert "... and 25 more flows: --format json has all." in _text(many)


def test_flows_that_are_not_drawn_are_said_to_be_left_out_of_what_dead_endpoints_get() -> None:
    assert "measured 500 of 1,000 flows." in _text(replace(PCAP, verdicts=(judge(DEAD),)))
    text = _text(replace(PCAP, verdicts=(judge(replace(DEAD, repeated=50)),)))
    assert "measured 500 of 1,000 drawn flows; session affinity decides the other 50." in text


def test_where_the_terminal_is_narrow_a_row_goes_on_with_where_it_landed() -> None:
    lines = render_terminal(render(PCAP), width=50, colour=False).splitlines()
    landed = {each.address for v in PCAP.verdicts for each in v.measurement.endpoints}
    assert any(line.startswith(tuple(f"        {each}" for each in landed)) for line in lines)
