"""Flows that cross the rules of two nodes, each with its own dump."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.effort import PROFILE
from tests.support.lab.running import kubeodds, lab_run, python
from tests.support.lab.two_nodes import Asked, cluster

pytestmark = pytest.mark.lab

#: Targets beside DROP: the deep check's.
DEEP = () if PROFILE == "quick" else ("REJECT --reject-with icmp-port-unreachable",)


class Given(Asked):
    def asked(self, elsewhere: str, *more: str) -> list[str]:
        """Return what asks about node0, where node1 has these rules."""
        flows = () if "--for" in more else ("--flows", "1000")
        return [*self.words(cluster().dump, elsewhere), *flows, *more]


@pytest.fixture
def given(tmp_path: Path) -> Given:
    return Given(tmp_path)


def elsewhere(*rules: str) -> str:
    """Return the dump of node1, with these rules before kube-proxy's."""
    rows = replace(cluster(), node="node1").dump.splitlines()
    at = next((at for at, row in enumerate(rows) if row.startswith("-A FORWARD ")), None)
    assert at is not None
    return "\n".join([*rows[:at], *rules, *rows[at:]]) + "\n"


def test_a_node_port_leads_through_the_rules_of_both(given: Given) -> None:
    words = given.asked(elsewhere(), "--from", "external,pod,node,pod-elsewhere")
    status, found, errors = lab_run(*words)
    assert (status, found["agrees"]) == (0, True), errors
    assert {m["frontend"].split()[0] for m in found["measurements"]} == {"ClusterIP", "NodePort"}
    for each in found["measurements"]:
        assert (each["unaccounted"], each["counter_difference"]) == (0, 0)
        assert [e["answered"] for e in each["endpoints"]] == [
            e["landed"] for e in each["endpoints"]
        ]


def test_an_endpoint_reaches_its_own_service_through_the_rules_of_both(given: Given) -> None:
    """What it sends to the other endpoint comes there from itself, to a NodePort from its node."""
    rule = "-A FORWARD -s 192.168.9.10/32 -d 10.244.1.0/24 -j DROP"
    status, found, errors = lab_run(*given.asked(elsewhere(rule), "--from", "hairpin"))
    assert (status, found["agrees"], found["left_out"]) == (0, True, []), errors
    assert {m["frontend"].split()[0] for m in found["measurements"]} == {"ClusterIP", "NodePort"}
    # What the other node's endpoint sends: `test_behind`.
    own = [each for each in found["measurements"] if each["node"] == "node0"]
    assert len(own) == len(found["measurements"]) / 2 == 2
    for each in own:
        here, there = sorted(each["endpoints"], key=lambda e: str(e["node"]))
        assert (here["node"], there["node"]) == ("node0", "node1")
        assert each["flows"] == 500  # each endpoint sends a half
        is_masqueraded = each["frontend"].startswith("NodePort")
        assert there["counted"] > 150
        assert there["landed"] == (0 if is_masqueraded else there["counted"])
        assert here["answered"] == here["landed"] > 150


def test_endpoints_of_nodes_with_rules_alone_are_named_in_a_timed_run(given: Given) -> None:
    made = json.loads(json.dumps(cluster().items))
    made[-1]["endpoints"] = made[-1]["endpoints"][1:]
    here = replace(cluster(), items=made)
    there = replace(here, node="node1")
    objects = json.dumps({"kind": "List", "items": made})
    words = [given.write("node0.txt", here.dump), "--node", "node0"]
    words += ["--objects", given.write("objects.json", objects)]
    words += ["--rules", f"node1={given.write('node1.txt', there.dump)}"]
    words += ["--for", "1s", "--rate", "400"]
    status, found, errors = lab_run(*words, "--from", "pod,hairpin")
    assert (status, found["agrees"]) == (0, True), errors
    assert {each["source"] for each in found["routes"]} == {"pod"}
    reasons = {(each["source"], each["reason"]) for each in found["left_out"]}
    says = "what endpoints of a node with rules of its own send traverses these first"
    assert reasons == {("hairpin", says)}


@pytest.mark.parametrize("target", ["DROP", *DEEP])
def test_what_the_other_node_ends_is_predicted_by_the_source_that_it_sees(
    given: Given, target: str
) -> None:
    """A flow to a NodePort comes masqueraded: from the node's address, and not the client's."""
    rule = f"-A FORWARD -s 192.168.9.10/32 -d 10.244.1.0/24 -j {target}"
    status, found, errors = lab_run(*given.asked(elsewhere(rule), "--from", "external,pod"))
    assert (status, found["agrees"]) == (0, True), errors
    by_route = {(m["frontend"].split()[0], m["source"]): m for m in found["measurements"]}
    for (kind, source), each in by_route.items():
        there = next(e for e in each["endpoints"] if e["node"] == "node1")
        is_masqueraded = kind == "NodePort" or source == "external"
        assert there["predicted"]["upper"]["value"] == (0 if is_masqueraded else 0.5)
        assert bool(there["landed"]) is not is_masqueraded
        assert there["counted"] > 300  # sent there all the same
        ended = each["unaccounted"] if target == "DROP" else each["rejected"]
        assert ended == (there["counted"] if is_masqueraded else 0)


def test_answers_that_the_other_node_ends_are_predicted(given: Given) -> None:
    """A pod's answer has the pod's address there; one that is masqueraded goes to a node's."""
    rule = "-A FORWARD -s 10.244.1.3/32 -d 10.244.0.0/24 -p tcp -m tcp --sport 80 -j DROP"
    words = given.asked(elsewhere(rule), "--from", "external,pod,node")
    status, found, errors = lab_run(*words)
    assert (status, found["agrees"]) == (0, True), errors
    for each in found["measurements"]:
        there = next(e for e in each["endpoints"] if e["node"] == "node1")
        is_kept = (each["frontend"].split()[0], each["source"]) == ("ClusterIP", "pod")
        assert there["landed"] > 300
        assert there["answered"] == (0 if is_kept else there["landed"])
        of = [there["unanswered"][end]["value"] for end in ("lower", "upper")]
        assert of == [is_kept, is_kept]


#: The lab with a prediction that knows nothing of the other node's rules.
_BLIND = """
import sys
from analyzer.model.probability import NEVER, Bounds
from netns_lab import beyond, cli
beyond._ended = lambda *_: Bounds(NEVER, NEVER)
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.skipif(PROFILE == "quick", reason="what is predicted in vain is CI's")
def test_rules_of_the_other_node_that_nobody_foresaw_are_found_out(given: Given) -> None:
    words = given.asked(elsewhere("-A FORWARD -d 10.244.1.3/32 -j DROP"), "--service", "shop")
    done = python("-c", _BLIND, "run", *words)
    assert done.returncode == 1, done.stderr
    assert "DISAGREES" in done.stdout


def test_captures_of_both_nodes_agree(captures: Path) -> None:
    for version in ("1.36.2-iptables-legacy", "1.36.2-nftables"):
        folder = captures / version
        name = "nft-list-ruleset.txt" if "nft" in version else "iptables-legacy-save.txt"
        mine, theirs = folder / "two-node@worker1", folder / "two-node"
        words = [str(mine / name), "--objects", str(mine / "objects.json"), "--node", "worker1"]
        words += ["--rules", f"master={theirs / name}", "--from", "pod,external,node,pod-elsewhere"]
        status, found, errors = lab_run(*words, "--flows", "500")
        assert (status, found["agrees"]) == (0, True), errors


#: Half a second each of life, silence and life again.
DIES = ("--for", "1.5s", "--rate", "2400", "--kill", "node1@0.5s", "--revive", "node1@1s")


def test_a_node_goes_silent_with_its_rules_and_what_comes_for_it_is_counted(given: Given) -> None:
    """What its rules drop of the living they do not even see of the silent: it has come there."""
    rule = "-A FORWARD -s 192.168.9.10/32 -d 10.244.1.0/24 -j DROP"
    words = given.asked(elsewhere(rule), *DIES, "--from", "pod,external")
    status, found, errors = lab_run(*words)
    assert (status, found["agrees"], found["unaccounted"]) == (0, True, 0), errors
    assert {each["frontend"].split()[0] for each in found["routes"]} == {"ClusterIP", "NodePort"}
    assert {each["source"] for each in found["routes"]} == {"pod", "external"}
    for at, route in enumerate(found["routes"]):
        # Masqueraded by node0 the flows have the address that is dropped.
        drops = route["source"] == "external" or route["frontend"].startswith("NodePort")
        phases = [each["measurement"] for each in found["phases"] if each["route"] == at]
        before, silent, after = phases
        for each in (before, after):
            there = next(e for e in each["endpoints"] if e["node"] == "node1")
            assert there["predicted"]["upper"]["value"] == (0 if drops else 0.5)
            assert (bool(each["unaccounted"]), bool(there["landed"])) == (drops, not drops)
        there = next(e for e in silent["endpoints"] if e["node"] == "node1")
        assert (there["death"], there["predicted"]["lower"]["value"]) == ("silent", 0.5)
        assert there["landed"] > 100
        assert (there["answered"], silent["unaccounted"]) == (0, 0)


@pytest.mark.deep
def test_connections_to_a_silent_node_with_rules_hang_until_it_lives_again(given: Given) -> None:
    times = ("--for", "3.4s", "--kill", "node1@0.4s", "--revive", "node1@1.6s")
    _, found, errors = lab_run(*given.asked(elsewhere(), *times, "--connections", "24"))
    assert not errors.count("error")
    assert found["agrees"], found["connections"]
    fared = {(each["endpoint"], each["fate"]) for each in found["connections"]}
    assert len(found["routes"]) == 2
    assert fared == {("10.244.0.3:80", "survived"), ("10.244.1.3:80", "hung")}


def test_a_node_with_rules_of_its_own_dies_in_no_other_way(given: Given) -> None:
    words = given.asked(elsewhere(), "--for", "1s", "--kill", "node1:reject@0.5s")
    done = kubeodds("lab", "run", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "goes silent or drop with them; for reject name its endpoints" in done.stderr
