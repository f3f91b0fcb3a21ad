"""Endpoints of a node that has a dump of its own call their Services through its rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.clusters import GeneratedCluster
from tests.support.lab.running import kubeodds, lab_run, python, swapped
from tests.support.lab.two_nodes import Asked, cluster

pytestmark = pytest.mark.lab

HERE, THERE = "10.244.0.3:80", "10.244.1.3:80"
TRAVERSES: Final = "what endpoints of a node with rules of its own send traverses these first"


class Given(Asked):
    def words(self, here: str, there: str, items: Sequence[Any] | None = None) -> list[str]:
        """Return what asks about endpoints of node0 and node1, which have these dumps."""
        return [*super().words(here, there, items), "--from", "hairpin"]


@pytest.fixture
def given(tmp_path: Path) -> Given:
    return Given(tmp_path)


def on_node1(made: GeneratedCluster) -> GeneratedCluster:
    return replace(made, node="node1")


def before(rows: str, chain: str, rule: str) -> str:
    """Return a dump with a rule before the first one of a chain."""
    lines = rows.splitlines()
    at = next(at for at, row in enumerate(lines) if row.startswith(f"-A {chain} "))
    return "\n".join([*lines[:at], rule, *lines[at:]]) + "\n"


def by_node(found: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the measurements by the node of the sender, and the kind of the frontend."""
    return {(each["node"], each["frontend"].split()[0]): each for each in found["measurements"]}


def counts(measured: dict[str, Any], of: str) -> dict[str, int]:
    return {f"{e['address']}:{e['port']}": e[of] for e in measured["endpoints"]}


def predicted(measured: dict[str, Any]) -> dict[str, tuple[float, float]]:
    return {
        f"{e['address']}:{e['port']}": tuple(
            e["predicted"][end]["value"] for end in ("lower", "upper")
        )
        for e in measured["endpoints"]
    }


def of_iptables(made: GeneratedCluster) -> str:
    return made.dump


def of_nft(made: GeneratedCluster) -> str:
    return made.nft


MODES: Final = (of_iptables, of_nft)


@pytest.mark.parametrize("there", MODES)
@pytest.mark.parametrize("here", MODES)
def test_endpoints_of_both_nodes_send(
    given: Given,
    here: Callable[[GeneratedCluster], str],
    there: Callable[[GeneratedCluster], str],
) -> None:
    words = given.words(here(cluster()), there(on_node1(cluster())))
    status, found, errors = lab_run(*words, "--flows", "400")
    assert (status, found["agrees"], found["left_out"]) == (0, True, []), errors
    assert errors == ""
    measured = by_node(found)
    assert set(measured) == {(n, k) for n in ("node0", "node1") for k in ("ClusterIP", "NodePort")}
    for each in measured.values():
        assert predicted(each) == {HERE: (0.5, 0.5), THERE: (0.5, 0.5)}
        assert counts(each, "counted") == counts(each, "landed") == counts(each, "answered")
        assert (each["unaccounted"], each["counter_difference"]) == (0, 0)


def test_the_rules_of_the_senders_node_draw(given: Given) -> None:
    """Those of node1 know one endpoint alone; a NodePort is one of node0, whose rules draw."""
    items = json.loads(json.dumps(cluster().items))
    items[-1]["endpoints"] = items[-1]["endpoints"][1:]
    there = replace(on_node1(cluster()), items=items)
    status, found, errors = lab_run(*given.words(cluster().dump, there.dump), "--flows", "400")
    assert (status, found["agrees"]) == (0, True), errors
    measured = by_node(found)
    assert counts(measured["node1", "ClusterIP"], "landed") == {HERE: 0, THERE: 200}
    for each in ("node0", "ClusterIP"), ("node0", "NodePort"), ("node1", "NodePort"):
        assert predicted(measured[each])[HERE] == (0.5, 0.5)


def test_rules_of_both_nodes_end_what_an_endpoint_sends(given: Given) -> None:
    """Those of node0 see it masqueraded, and node1's never see what node0's end."""
    masquerade = "-A POSTROUTING -s 10.244.1.0/24 -d 10.244.0.0/24 -j MASQUERADE"
    rejects = (
        "-A FORWARD -s 192.168.9.11/32 -d 10.244.0.3/32 -p tcp -m tcp -j REJECT"
        " --reject-with tcp-reset"
    )
    drops = "-A FORWARD -d 10.244.1.3/32 -p tcp -m tcp --dport 80 -j DROP"
    here = before(cluster().dump, "FORWARD", rejects)
    there = before(on_node1(cluster()).dump, "POSTROUTING", masquerade)
    words = given.words(here, before(there, "FORWARD", drops))
    status, found, errors = lab_run(*words, "--flows", "400")
    assert (status, found["agrees"]) == (0, True), errors
    each = by_node(found)["node1", "ClusterIP"]
    assert predicted(each) == {HERE: (0, 0), THERE: (0, 0)}
    ended = {told["rule"]: told["packets"] for told in each["ended_by"]}
    sent = counts(each, "counted")
    names = f"node node0, filter: {rejects}", f"node node1, filter: {drops}"
    assert ended == {names[0]: sent[HERE], names[1]: sent[THERE]}
    assert (each["rejected"], each["unaccounted"]) == (sent[HERE], sent[THERE])


GUARD: Final = """
table ip guard {
    chain forward {
        type filter hook forward priority 5; policy accept;
        ip saddr 192.168.9.11 ip daddr 10.244.0.3 drop
    }
    chain post {
        type nat hook postrouting priority 90; policy accept;
        ip saddr 10.244.1.0/24 ip daddr 10.244.0.0/24 masquerade
    }
}
"""


def test_a_rule_of_nft_that_ends_what_comes_masqueraded_is_named(given: Given) -> None:
    words = given.words(cluster().nft + GUARD, on_node1(cluster()).nft + GUARD)
    status, found, errors = lab_run(*words, "--flows", "200")
    assert (status, found["agrees"]) == (0, True), errors
    each = by_node(found)["node1", "ClusterIP"]
    rule = "ip saddr 192.168.9.11 ip daddr 10.244.0.3 drop"
    assert each["ended_at"] == f"node node0, ip guard forward: {rule}"


def test_rules_that_end_the_answers_are_predicted(given: Given) -> None:
    """What node0 answers at its NodePort has its address, as what it has masqueraded."""
    rule = "-A FORWARD -s 192.168.9.10/32 -d 10.244.1.0/24 -j DROP"
    there = before(on_node1(cluster()).dump, "FORWARD", rule)
    status, found, errors = lab_run(*given.words(cluster().dump, there), "--flows", "400")
    assert (status, found["agrees"]) == (0, True), errors
    each = by_node(found)["node1", "NodePort"]
    assert predicted(each) == {HERE: (0.5, 0.5), THERE: (0, 0)}
    assert counts(each, "landed")[HERE] > 50
    assert counts(each, "answered") == {HERE: 0, THERE: 0}
    each = by_node(found)["node1", "ClusterIP"]
    assert counts(each, "answered") == counts(each, "landed")


def test_an_answer_that_the_node_of_the_endpoint_drops_is_predicted(given: Given) -> None:
    rule = "-A FORWARD -s 10.244.0.3/32 -d 10.244.1.3/32 -j DROP"
    here = before(cluster().dump, "FORWARD", rule)
    words = given.words(here, on_node1(cluster()).dump)
    status, found, errors = lab_run(*words, "--flows", "400")
    assert (status, found["agrees"]) == (0, True), errors
    each = by_node(found)["node1", "ClusterIP"]
    landed = counts(each, "landed")
    assert counts(each, "answered") == {HERE: 0, THERE: landed[THERE]}
    assert landed[HERE] > 50


def test_verify_measures_them_too(given: Given) -> None:
    words = given.words(cluster().dump, on_node1(cluster()).dump)
    done = kubeodds("lab", "verify", *words, "--resolution", "20%", "-o", "json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["agrees"], found["left_out"]) == (0, True, []), done.stderr
    assert {node for node, _ in by_node(found)} == {"node0", "node1"}


def test_rules_that_draw_otherwise_than_the_dump_are_found_out(given: Given) -> None:
    """What is loaded differs, and so does what endpoints of either node draw."""
    words = given.words(cluster().dump, on_node1(cluster()).dump)
    words += ["--service", "shop", "--flows", "8000", "-o", "json"]
    done = python("-c", swapped("0.50000000000", "0.40000000000"), "run", *words)
    found = json.loads(done.stdout)
    assert (done.returncode, found["agrees"]) == (1, False), done.stderr
    assert {each["agrees"] for each in by_node(found).values()} == {False}


#: A program decides what becomes of such flows.
UNKNOWN: Final = "-A FORWARD -d 10.244.0.3/32 -p tcp -m tcp --dport 80 -j NFQUEUE --queue-num 7"


def test_what_is_not_predicted_is_not_sent_and_named(given: Given) -> None:
    there = before(on_node1(cluster()).dump, "FORWARD", UNKNOWN)
    words = given.words(cluster().dump, there)
    status, found, errors = lab_run(*words, "--flows", "100")
    assert (status, found["agrees"]) == (0, True), errors
    # The NodePort is node0's, and so are the rules that draw.
    assert ("node1", "ClusterIP") not in by_node(found)
    why = "the dump of node1 does not show all of its ends"
    named = f"flows of {THERE} to default/shop:http, their own Service, are not replayed: "
    assert f"{named}{TRAVERSES}; {why}" in errors


def test_with_session_affinity_they_are_named(given: Given) -> None:
    items = json.loads(json.dumps(cluster().items))
    spec = next(each["spec"] for each in items if each["kind"] == "Service")
    spec["sessionAffinity"] = "ClientIP"
    spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 600}}
    made = replace(cluster(), items=items)
    words = given.words(made.dump, on_node1(made).dump, items)
    status, found, errors = lab_run(*words, "--flows", "100")
    assert (status, found["agrees"]) == (0, True), errors
    assert {node for node, _ in by_node(found)} == {"node0"}
    assert f"{TRAVERSES}; session affinity is not measured there" in errors


def test_a_route_of_which_no_flow_is_traced_is_named(given: Given) -> None:
    items = json.loads(json.dumps(cluster().items))
    items[-1]["endpoints"] = items[-1]["endpoints"][1:]
    made = replace(cluster(), items=items)
    words = given.words(made.dump, on_node1(made).dump, items)
    status, found, errors = lab_run(*words, "--flows", "100", "--trace")
    assert (status, found["agrees"]) == (0, True), errors
    assert {node for node, _ in by_node(found)} == {"node1"}
    assert found["traces"] == []
    says = f"no flow of an endpoint to default/shop:http, its own Service, is traced: {TRAVERSES}"
    assert says in errors
