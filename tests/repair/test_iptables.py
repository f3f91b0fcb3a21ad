"""Repairs of iptables mode: the analyzer asked again, and iptables-restore played."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.generate import RulesLayout
from analyzer.kubeproxy.iptables import Recogniser
from analyzer.kubeproxy.view import View
from analyzer.model.cluster import Cluster
from analyzer.model.iptables.rules import Ruleset
from analyzer.parsers.iptables_save import parse, render
from analyzer.repair.applied import RestoreError, Tables, applied, has_repair
from analyzer.repair.iptables import patch_of
from analyzer.repair.witness import RepairedOutcome
from tests.support.captures import FIXTURES, Capture, captures_in
from tests.support.clusters import GeneratedCluster, clusters
from tests.support.effort import PROFILE, examples
from tests.support.parsed_objects import parse_objects
from tests.support.reading import read_ruleset
from tests.support.repairs import held

#: In the quick check one of each kind, and one node that dies.
_KINDS = ("1.14", "1.23.4", "1.36") if PROFILE != "soak" else ("1.",)
CAPTURES = [
    each
    for each in captures_in(FIXTURES, "two-node*", "seed-dns*", "policies+kubelet")
    if str(each).startswith(_KINDS)
]


def view_of(ruleset: Ruleset, cluster: Cluster, node: str) -> View:
    addresses = cluster.nodes[node].addresses
    return Recogniser(ruleset, cluster, node=node, node_addresses=addresses).view()


def lines_of(ruleset: Ruleset) -> list[str]:
    return list(Tables(render(ruleset)).lines())


@pytest.mark.parametrize("capture", CAPTURES, ids=str)
def test_a_node_that_is_dead_gets_no_flows_any_more(capture: Capture) -> None:
    ruleset = read_ruleset(capture.dump.read_bytes(), capture.dump.name)
    assert isinstance(ruleset, Ruleset)
    cluster = capture.cluster
    before = view_of(ruleset, cluster, capture.node)
    fates: Counter[RepairedOutcome] = Counter()
    for victim in sorted(cluster.node_names)[: None if PROFILE == "soak" else 1]:
        dead = [e for e in before.endpoints if cluster.placement(e.address).node == victim]
        patch = patch_of(ruleset, dead)
        assert not patch.problems
        then = applied(ruleset, patch.apply)
        fates += held(before, view_of(then, cluster, capture.node), dead)
    assert fates[RepairedOutcome.COVERED]


@pytest.mark.alike
@pytest.mark.parametrize("layout", RulesLayout)
@examples(quick=4, soak=300)
@given(data=st.data())
def test_random_clusters_lose_nothing_more_to_random_dead(
    layout: RulesLayout, data: st.DataObject
) -> None:
    made: GeneratedCluster = data.draw(clusters(layout))
    cluster = parse_objects([("objects", _json(made))])
    ruleset = parse(made.dump, "dump")
    before = view_of(ruleset, cluster, made.node)
    known = sorted(before.endpoints, key=str)
    dead = [each for each in known if data.draw(st.booleans())]
    patch = patch_of(ruleset, dead)
    assert not patch.problems
    if not patch.apply:
        assert not held(before, before, dead)
        return
    then = applied(ruleset, patch.apply)
    held(before, view_of(then, cluster, made.node), dead)
    assert has_repair(then)
    # Twice is refused; the undo leaves the rules as they were.
    tables = Tables(render(ruleset))
    tables.run(patch.apply)
    with pytest.raises(RestoreError):
        tables.run(patch.apply)
    tables = Tables(render(ruleset))
    tables.run(patch.apply)
    tables.run(patch.undo)
    assert [*tables.lines()] == lines_of(ruleset)


def test_own_chains_jump_to_no_chain_that_kube_proxy_deletes() -> None:
    for capture in CAPTURES:
        ruleset = read_ruleset(capture.dump.read_bytes(), capture.dump.name)
        assert isinstance(ruleset, Ruleset)
        view = view_of(ruleset, capture.cluster, capture.node)
        patch = patch_of(ruleset, view.endpoints[:1])
        jumps = {
            line.split(" -j ")[1].split()[0] for line in patch.apply.splitlines() if " -j " in line
        }
        assert {j for j in jumps if j.startswith("KUBE-")} <= {"KUBE-MARK-MASQ", "KUBE-MARK-DROP"}


BASE = """\
*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-SEP-A - [0:0]
:KUBE-SEP-B - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-X - [0:0]
-A PREROUTING -j OTHERS
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -j KUBE-SERVICES
-A KUBE-SEP-A -p tcp -m tcp -j DNAT --to-destination 10.0.0.1:80
-A KUBE-SEP-B -p tcp -m tcp -j DNAT --to-destination 10.0.0.2:80
-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m tcp --dport 80 -j KUBE-SVC-X
{draws}
COMMIT
"""


def patch_for(draws: str) -> tuple[str, tuple[str, ...]]:
    ruleset = parse(BASE.format(draws=draws), "dump")
    from analyzer.kubeproxy.view import Endpoint
    from analyzer.model.addresses import address_from_text

    address = address_from_text("10.0.0.1")
    assert address is not None
    patch = patch_of(ruleset, [Endpoint(address, 80)])
    return patch.apply, patch.problems


def test_it_is_entered_right_before_kube_proxy_and_behind_others() -> None:
    apply, _ = patch_for("-A KUBE-SVC-X -j KUBE-SEP-A")
    assert "-I PREROUTING 2 -j KODDS-SERVICES" in apply
    assert "-I OUTPUT 1 -j KODDS-SERVICES" in apply


def test_where_nobody_is_left_nat_leaves_flows_alone_and_filter_rejects_them() -> None:
    apply, problems = patch_for("-A KUBE-SVC-X -j KUBE-SEP-A")
    assert "-A KODDS-SVC-X -j ACCEPT" in apply
    assert "-d 10.96.0.1/32 -p tcp -m tcp --dport 80 -j REJECT" in apply
    assert problems == ()


@pytest.mark.parametrize(
    ("draws", "says"),
    [
        (
            "-A KUBE-SVC-X -m statistic --mode random --probability 0.5 -j KUBE-SEP-A",
            "leave some flows",
        ),
        (
            "-A KUBE-SVC-X -m odd --some -j KUBE-SEP-B\n-A KUBE-SVC-X -j KUBE-SEP-A",
            "not understood",
        ),
        ("-A KUBE-SVC-X -j ODD --some\n-A KUBE-SVC-X -j KUBE-SEP-A", "not understood"),
        ("-A KUBE-SVC-X -j KUBE-SVC-X\n-A KUBE-SVC-X -j KUBE-SEP-A", "jumps to itself"),
        ("-A KUBE-SVC-X -j OTHERS\n-A KUBE-SVC-X -j KUBE-SEP-A", "not kube-proxy's"),
    ],
)
def test_what_is_not_understood_is_left_to_kube_proxy_and_named(draws: str, says: str) -> None:
    apply, problems = patch_for(draws)
    assert apply == ""
    assert any(says in each for each in problems), problems


def _json(made: GeneratedCluster) -> bytes:
    import json

    return json.dumps({"kind": "List", "items": made.items}).encode()
