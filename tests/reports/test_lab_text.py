from __future__ import annotations

from analyzer.failure.agreement import judge
from analyzer.kubeproxy.assumed import ASSUMED
from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.model.measurement import Measurement
from analyzer.model.probability import ALWAYS, Bounds
from analyzer.model.value import replace
from analyzer.reports.lab_answers import LabAnswer
from analyzer.reports.lab_text import render
from analyzer.reports.unstyled import render_unstyled
from tests.support.answers import ALIVE, DEAD, counted, measured


def shown(*measurements: Measurement) -> str:
    verdicts = tuple(judge(each) for each in measurements)
    return render_unstyled(render(LabAnswer(dead="node master", verdicts=verdicts, rate=1e-6)))


def test_what_the_prediction_rests_on_stands_before_the_verdict() -> None:
    told = Diagnostic(severity=Severity.INFO, code=ASSUMED, message="so it is", file="dump")
    answer = LabAnswer(
        dead="node master", verdicts=(judge(measured(DEAD, ALIVE)),), rate=1e-6, diagnostics=(told,)
    )
    *_, last, verdict = render_unstyled(render(answer)).splitlines()
    assert last == "Assumed: so it is."
    assert verdict.startswith("Verdict")


def row(text: str, address: str) -> list[str]:
    return next(line for line in text.splitlines() if line.startswith(address)).split()


def test_a_measurement_is_headed_by_what_was_sent_where() -> None:
    head, where = shown(measured(DEAD, ALIVE)).splitlines()[:2]
    assert head.startswith("10,000 new flows from a pod to kube-system/kube-dns:dns")
    assert "at node worker1" in head
    assert "dead: node master" in head
    assert where == "iptables-legacy on Linux 6.18, in 1.50 s"
    unnamed = replace(measured(DEAD, ALIVE), node=None)
    assert "at node" not in shown(unnamed)


def test_what_was_measured_stands_beside_what_was_predicted() -> None:
    text = shown(measured(DEAD, ALIVE))
    assert row(text, "10.1.0.1")[:7] == [
        "10.1.0.1:53",
        "master",
        "DEAD",
        "1/2",
        "50.0%",
        "5,021",
        "50.21%",
    ]
    assert row(text, "10.1.0.2")[-1] == "agrees"
    assert "Verdict: agrees" in text


def test_what_was_lost_on_the_dead_is_told_beside_its_prediction() -> None:
    text = shown(measured(DEAD, ALIVE))
    assert "predicted 50.0%, measured 50.21% (5,021 of 10,000)" in text
    assert "On dead endpoints" not in shown(measured(counted("10.1.0.1", 5_000), ALIVE))


def test_counters_that_were_not_read_are_no_zeros() -> None:
    text = shown(measured(counted("10.1.0.1", 5_021, dead=True, counter=None), ALIVE))
    assert "-" in row(text, "10.1.0.1")
    assert "Counters minus captures: not read" in text
    assert "Counters minus captures: 0" in shown(measured(DEAD, ALIVE))


def test_a_count_that_is_far_off_disagrees() -> None:
    far = measured(counted("10.1.0.1", 6_000, dead=True), counted("10.1.0.2", 4_000))
    text = shown(far)
    assert row(text, "10.1.0.1")[-1] == "DISAGREES"
    assert "Verdict: DISAGREES" in text


def test_each_fault_is_told_with_its_service() -> None:
    lost = measured(DEAD, counted("10.1.0.2", 4_900))
    assert any(line.startswith("kube-system/kube-dns:dns: ") for line in shown(lost).splitlines())
    assert "Unaccounted for: 79" in shown(lost)


def test_few_flows_prove_little_and_it_says_so() -> None:
    few = replace(measured(counted("10.1.0.1", 2, dead=True), counted("10.1.0.2", 1)), flows=3)
    assert "would not be noticed" in shown(few)
    assert "would not be noticed" not in shown(measured(DEAD, ALIVE))


def test_one_disagreement_is_enough() -> None:
    far = measured(counted("10.1.0.1", 6_000, dead=True), counted("10.1.0.2", 4_000))
    assert "Verdict: DISAGREES" in shown(measured(DEAD, ALIVE), far)


def test_flows_that_reach_nobody_need_no_table() -> None:
    """From the node the lab cannot tell what is rejected from what is dropped; the rule says it."""
    all_of_them = Bounds(ALWAYS, ALWAYS)
    rule = ((100, "-A KUBE-PROXY-FIREWALL -j DROP"),)
    ended = replace(measured(), flows=100, ended=all_of_them, rejected=40, ended_by=rule)
    text = shown(ended)
    assert "ENDPOINT" not in text
    assert "measured 100.00% (40 rejected, 60 dropped).\n100 packets: -A KUBE-PROXY" in text
    of_node = shown(replace(ended, source="node"))
    assert "measured 100.00% (100 of 100).\n100 packets: -A KUBE-PROXY" in of_node
    traced = shown(replace(ended, ended_by=None, ended_at="ip kube-proxy reject-chain: reject"))
    assert "\nA flow that was traced ended at ip kube-proxy reject-chain: reject\n" in traced
