"""What each measure changes, and the laws that hold of what it buys."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from analyzer.advice.advise import ServiceCosts, items_of
from analyzer.advice.measure import ClusterState, Refused, Subject
from analyzer.advice.measures import MEASURES, USUAL, measure_of
from analyzer.failure.incidence import ONE
from tests.support.advised import (
    KEY,
    OTHER,
    WORKERS,
    after,
    cluster,
    clusters,
    items_after,
    judged,
    naive,
    node,
    service,
    slice_of,
)
from tests.support.effort import examples

#: What is for a Service that pods answer, and changes objects.
NAMES = [
    n for n in USUAL if (m := measure_of(n)) and m.subject is Subject.SERVICE and n != "pod-ips"
]
NAMED_OR_PAIRS = st.sampled_from(["", *NAMES]) | st.builds(
    "{}+{}".format, st.sampled_from(["same-zone", "same-node", "local"]), st.sampled_from(NAMES)
)
NEAR = Fraction(1, 1 << 26)


def places(items: Sequence[Any]) -> Counter[str]:
    return Counter(
        e["nodeName"]
        for item in items_of(items, KEY)
        if item["kind"] == "EndpointSlice"
        for e in item["endpoints"]
    )


def score(items: Sequence[Any]) -> Any:
    found = judged(items)
    assert isinstance(found, ServiceCosts), found
    return found.score


# --- what is judged, against a look at every node -----------------------------------


@given(items=clusters(), name=NAMED_OR_PAIRS, size=st.integers(1, 2))
@examples(60, 1_000)
def test_what_a_measure_leaves_is_what_a_naive_look_says(
    items: list[Any], name: str, size: int
) -> None:
    before = copy.deepcopy(items)
    changed = after(name, items) if name else ClusterState(items=items)
    assert items == before
    assume(isinstance(changed, ClusterState))
    assert isinstance(changed, ClusterState)
    others = [
        [i for i in items_of(of, OTHER) if i["kind"] != "Node"] for of in (changed.items, items)
    ]
    assert others[0] == others[1]
    found = judged(changed.items, depth=size)
    assert isinstance(found, ServiceCosts)
    wanted = naive(changed.items, size=size)
    assert found.score.survives == found.score.at_most == wanted.survives
    assert abs(found.score.worst.loss.upper.as_fraction() - wanted.worst) < NEAR
    assert abs(Fraction(found.score.mean[1], ONE) - wanted.mean) < NEAR
    assert found.score.dropped == wanted.dropped
    assert found.score.worst.loss.is_exact


# --- laws -------------------------------------------------------------------------------


@given(items=clusters())
@examples(12, 500)
def test_a_replica_on_a_node_of_its_own_costs_no_other_node_more(items: list[Any]) -> None:
    items[-4]["spec"]["internalTrafficPolicy"] = "Cluster"
    changed = after("replica", items)
    assume(isinstance(changed, ClusterState))
    assert isinstance(changed, ClusterState)
    (new,) = (places(changed.items) - places(items)).elements()
    was, now = score(items), score(changed.items)
    assert now.survives == was.survives + 1
    assert now.worst.loss.upper <= was.worst.loss.upper
    for name in (i["metadata"]["name"] for i in items if i["kind"] == "Node"):
        each = [judged(of, dead=(name,)) for of in (items, changed.items)]
        one, other = (e.score.worst.loss.upper for e in each if isinstance(e, ServiceCosts))
        # The node that has it carries what it did not before: that is the price.
        assert other <= one or (name == new and not one)


@given(items=clusters())
@examples(10, 500)
def test_pods_that_are_spread_survive_no_less_and_lose_no_more(items: list[Any]) -> None:
    items[-4]["spec"]["internalTrafficPolicy"] = "Cluster"
    changed = after("spread", items)
    assume(isinstance(changed, ClusterState))
    assert isinstance(changed, ClusterState)
    was, now = score(items), score(changed.items)
    assert now.survives > was.survives
    # Which endpoint gets what the draws round off depends on the order of their addresses.
    before, then = (each.worst.loss.upper.as_fraction() for each in (was, now))
    assert then <= before + NEAR
    assert sum(places(changed.items).values()) == sum(places(items).values())


@given(items=clusters())
@examples(10, 500)
def test_a_replica_beside_others_survives_no_more(items: list[Any]) -> None:
    items[-4]["spec"]["internalTrafficPolicy"] = "Cluster"
    was, now = score(items), score(items_after("replica-beside", items))
    assert now.survives == was.survives
    assert now.worst.loss.upper >= was.worst.loss.upper


@given(items=clusters())
@examples(10, 500)
def test_with_a_local_policy_no_node_costs_another_anything(items: list[Any]) -> None:
    items[-4]["spec"]["internalTrafficPolicy"] = "Cluster"
    now = score(items_after("local", items))
    nodes = [i for i in items if i["kind"] == "Node"]
    assert not now.worst.loss.upper or len(nodes) == 1
    assert now.dropped == len(nodes) - len(places(items))


def test_a_replica_in_an_empty_zone_may_cost_that_zone_all() -> None:
    """So the law of a replica is none where flows stay in their zone."""
    nodes = [node(f"worker{n}", n, zone) for n, zone in enumerate("aab")]
    items = [*nodes, service(), slice_of([("worker0", 0), ("worker1", 1)])]
    items = [*items_after("same-zone", items)]
    assert float(score(items).worst.loss.upper) == 0.5
    more = items_after("replica", [*items, node("worker3", 3, "b")])
    assert places(more) == {"worker0": 1, "worker1": 1, "worker2": 1}
    # worker3 asks worker2 alone.
    assert float(score(more).worst.loss.upper) == 1.0
    assert score(more).survives == 0


# --- one measure each --------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "ends", "then"),
    [
        ("replica", (0, 1), {"worker0": 1, "worker1": 1, "worker2": 1}),
        ("replica-beside", (0, 1, 1), {"worker0": 1, "worker1": 3}),
        ("spread", (0, 0, 1), {"worker0": 1, "worker1": 1, "worker2": 1}),
        ("spread", (0, 0, 0, 0, 0), {"worker0": 2, "worker1": 1, "worker2": 1, "worker3": 1}),
        ("every-node", (0, 0, 1), {f"worker{n}": 1 for n in range(4)}),
        ("new-node+replica", (0, 1, 2, 3), {f"worker{n}": 1 for n in range(4)} | {"new-node": 1}),
    ],
)
def test_where_pods_are_then(name: str, ends: tuple[int, ...], then: dict[str, int]) -> None:
    assert places(items_after(name, cluster(*ends))) == then


def test_pods_leave_the_control_plane_or_are_all_there() -> None:
    masters = [node("master0", 8), node("master1", 9)]
    items = [*masters, *cluster(0)[:-1], slice_of([("master0", 8), ("master1", 9), ("worker0", 0)])]
    assert places(items_after("off-control-plane", items)) == {
        "worker0": 1,
        "worker1": 1,
        "worker2": 1,
    }
    assert places(items_after("on-control-plane", items)) == {"master0": 2, "master1": 1}


@pytest.mark.parametrize(
    ("name", "ends", "why"),
    [
        ("replica", (0, 1, 2, 3), "no other node can take one"),
        ("spread", (0, 1), "its pods are already on different nodes"),
        ("every-node", (0, 1, 2, 3), "every node that can take a pod has one"),
        ("off-control-plane", (0,), "no node has the control plane's role label"),
        ("same-zone", (0,), "no node has a zone"),
    ],
)
def test_why_a_measure_changes_nothing(name: str, ends: tuple[int, ...], why: str) -> None:
    found = after(name, cluster(*ends))
    assert isinstance(found, Refused)
    assert found.why.startswith(why)


@pytest.mark.parametrize(
    ("spec", "status", "why"),
    [
        ({"unschedulable": True}, {}, "worker1 is cordoned"),
        ({"taints": [{"key": "gpu", "effect": "NoSchedule"}]}, {}, "worker1 is tainted gpu:NoSc"),
        ({}, {"conditions": [{"type": "Ready", "status": "Unknown"}]}, "worker1 is not ready"),
    ],
)
def test_a_node_that_takes_no_pods_gets_none(
    spec: dict[str, Any], status: dict[str, Any], why: str
) -> None:
    other = node("worker1", 1, **spec)
    other["status"].update(status)
    items = [WORKERS[0], other, service(), slice_of([("worker0", 0)])]
    found = after("replica", items)
    assert isinstance(found, Refused)
    assert why in found.why


def test_a_taint_is_tolerated_where_one_of_its_pods_lives_with_it() -> None:
    taint: dict[str, Any] = {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}
    items = [
        node("a", 0, None, **taint),
        node("b", 1, None, **taint),
        service(),
        slice_of([("a", 0)]),
    ]
    assert places(items_after("replica", items)) == {"a": 1, "b": 1}


_TAINT: dict[str, Any] = {"key": "gpu", "value": "a", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("spec", "takes"),
    [
        ({}, False),
        ({"tolerations": [{"operator": "Exists"}]}, True),
        ({"tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]}, True),
        ({"tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}]}, False),
        ({"tolerations": [{"key": "gpu", "value": "a"}]}, True),
        ({"tolerations": [{"key": "gpu", "value": "b"}]}, False),
        ({"tolerations": [{"operator": "Exists"}], "nodeSelector": {"disk": "ssd"}}, False),
    ],
)
def test_what_pods_tolerate_and_select_they_say_themselves(
    spec: dict[str, Any], takes: bool
) -> None:
    pod = {
        "kind": "Pod",
        "metadata": {"namespace": "shop", "name": "web-0"},
        "spec": spec,
        "status": {"phase": "Running", "podIP": "10.244.0.50"},
    }
    # It runs on a node with the taint, as it did before that was there.
    nodes = [node("a", 0, None, taints=[_TAINT]), node("b", 1, None, taints=[_TAINT])]
    found = after("replica", [*nodes, service(), slice_of([("a", 0)]), pod])
    assert isinstance(found, ClusterState) is takes


def test_new_pods_have_addresses_that_nobody_has() -> None:
    items = cluster(0, 0, 1)
    for name in NAMES:
        found = after(name, items)
        if isinstance(found, ClusterState):
            used = [
                e["addresses"][0]
                for i in items_of(found.items, KEY)
                if i["kind"] == "EndpointSlice"
                for e in i["endpoints"]
            ]
            assert len(used) == len(set(used))


def test_pods_in_the_network_of_their_nodes_have_the_addresses_of_those() -> None:
    items = [*WORKERS, service(), slice_of([("worker0", 0)])]
    items[-1]["endpoints"][0]["addresses"] = ["192.168.0.10"]
    more = items_after("every-node", items)
    (made,) = [i for i in more if i["kind"] == "EndpointSlice"]
    assert [e["addresses"] for e in made["endpoints"]] == [[f"192.168.0.1{n}"] for n in range(4)]
    found = after("replica-beside", items)
    assert found == Refused("its pods have their nodes' addresses: no node can have two of them")


def test_endpoints_of_an_older_kind_are_changed_too() -> None:
    endpoints = {
        "kind": "Endpoints",
        "metadata": {"namespace": "shop", "name": "web"},
        "subsets": [
            {
                "addresses": [{"ip": "10.244.0.9", "nodeName": "worker0"}],
                "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
            }
        ],
    }
    more = items_after("replica", [*WORKERS, service(), endpoints])
    assert places(more) == {"worker0": 1, "worker1": 1}
    assert not [i for i in more if i["kind"] == "Endpoints"]


def test_hints_that_the_controller_allots_are_not_guessed() -> None:
    items = cluster(0, 1)
    for each in items[-1]["endpoints"]:
        each["hints"] = {"forZones": [{"name": "a"}]}
    found = after("replica", items)
    assert found == Refused("its endpoints have hints, which the controller would reassign")


def test_endpoints_of_which_no_node_is_known_are_not_placed() -> None:
    items = cluster(0, 1)
    items[-1]["endpoints"][1] = {"addresses": ["198.51.100.7"], "conditions": {"ready": True}}
    found = after("spread", items)
    assert found == Refused("the node of 1 of its endpoints is not known")


def test_the_pod_of_an_endpoint_that_moves_is_there_no_more() -> None:
    items = cluster(0, 0, 1)
    pods = [
        {
            "kind": "Pod",
            "metadata": {"namespace": "shop", "name": f"web-{at}"},
            "spec": {"nodeName": each["nodeName"]},
            "status": {"phase": "Running", "podIP": each["addresses"][0]},
        }
        for at, each in enumerate(items[-1]["endpoints"])
    ]
    more = items_after("spread", [*items, *pods])
    names = [i["metadata"]["name"] for i in more if i["kind"] == "Pod"]
    assert names == ["web-0", "web-2"]


def test_where_a_pod_is_its_own_object_may_say() -> None:
    items = cluster(0, 0)
    far = items[-1]["endpoints"][1]
    del far["nodeName"]
    pod = {
        "kind": "Pod",
        "metadata": {"namespace": "shop", "name": "web-1"},
        "spec": {"nodeName": "worker3"},
        "status": {"phase": "Running", "podIP": far["addresses"][0]},
    }
    found = after("spread", [*items, pod])
    assert found == Refused("its pods are already on different nodes")
    more = items_after("replica", [*items, pod])
    ends = [e for i in more if i["kind"] == "EndpointSlice" for e in i["endpoints"]]
    assert [e.get("nodeName") for e in ends] == ["worker0", None, "worker1"]  # it stays as it is


def test_both_ip_versions_are_changed_alike() -> None:
    items = cluster(0, 0)
    items[-2]["spec"]["clusterIPs"] = ["10.96.0.7", "fd00:96::7"]
    six = copy.deepcopy(items[-1])
    six["metadata"]["name"], six["addressType"] = "web-6", "IPv6"
    for at, each in enumerate(six["endpoints"]):
        each["addresses"] = [f"fd00:244::{at + 1}"]
    more = items_after("spread", [*items, six])
    assert places(more) == {"worker0": 2, "worker1": 2}
    assert score(more).survives == 1


def test_every_measure_is_usual_or_a_part_of_one() -> None:
    parts = {part for name in USUAL for part in name.split("+")}
    assert parts == set(MEASURES)
    assert all(name == measure.name for name, measure in MEASURES.items())
    assert measure_of("spread+nonesuch") is None
