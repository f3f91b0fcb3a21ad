"""Measures for the API server, for DNS, and for what stands in front of pods."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from analyzer.advice.advise import Adviser, Failures, ServiceCosts
from analyzer.advice.measure import API, ClusterState, Refused
from analyzer.advice.measures import USUAL, measure_of
from analyzer.model.value import replace
from analyzer.outage.topologies import GivenTopology
from tests.support.advised import (
    KEY,
    SETTINGS,
    WORKERS,
    after,
    cluster,
    items_after,
    node,
    service,
    slice_of,
)


def _api(*masters: str) -> list[Any]:
    kube = slice_of([(name, n) for n, name in enumerate(masters)], API)
    for n, each in enumerate(kube["endpoints"]):
        each["addresses"] = [f"192.168.0.{10 + n}"]
        del each["nodeName"]
    nodes = [node(name, n) for n, name in enumerate(masters)]
    return [*nodes, node("worker9", 9), service(API, "10.96.0.1"), kube]


@pytest.mark.parametrize(
    ("names", "api", "survives"),
    [
        ("", 0, 0),
        ("second-master", 0, 1),
        ("third-master", 0, 2),
        ("third-master+load-balancer", 1, 2),
    ],
)
def test_what_masters_buy_the_api(names: str, api: int, survives: int) -> None:
    found: ClusterState | Refused = ClusterState(items=_api("master"))
    if names:
        found = after(names, _api("master"), API)
    assert isinstance(found, ClusterState)
    outcome = Adviser(found, SETTINGS, Failures(), 1).evaluated(found, API)
    assert isinstance(outcome, ServiceCosts)
    assert (outcome.api, outcome.score.survives) == (api, survives)


def test_a_load_balancer_goes_with_several_api_servers() -> None:
    assert after("load-balancer", _api("master"), API) == Refused("one API server needs none")
    found = after("load-balancer", _api("m0", "m1"), API)
    assert isinstance(found, Refused)  # neither has the role's label


def test_what_was_said_of_the_control_plane_holds_of_more_masters() -> None:
    measure = measure_of("third-master")
    assert measure is not None
    said = GivenTopology(
        control_plane=("master",), etcd=("master",), load_balancer=("client-side",)
    )
    found = measure.change(ClusterState(items=_api("master"), said=said), API)
    assert isinstance(found, ClusterState)
    names = ("master", "master-2", "master-3")
    assert (found.said.control_plane, found.said.etcd) == (names, names)
    outside = replace(said, etcd=("external",))
    found = measure.change(ClusterState(items=_api("master"), said=outside), API)
    assert isinstance(found, ClusterState)
    assert found.said.etcd == ("external",)


def test_static_pods_of_the_control_plane_are_copied() -> None:
    pod = {
        "kind": "Pod",
        "metadata": {"namespace": "kube-system", "name": "etcd", "labels": {"component": "etcd"}},
        "spec": {"nodeName": "master"},
        "status": {"phase": "Running"},
    }
    more = items_after("third-master", [*_api("master"), pod], API)
    pods = [i["spec"]["nodeName"] for i in more if i["kind"] == "Pod"]
    assert sorted(pods) == ["master", "master-2", "master-3"]


def test_a_cache_on_each_node_asks_the_dns_that_there_was() -> None:
    key = ("kube-system", "kube-dns")
    items = [*WORKERS, service(key), slice_of([("worker0", 0), ("worker1", 1)], key)]
    found = after("node-local-dns", items, key)
    assert isinstance(found, ClusterState)
    assert found.either == (key, ("kube-system", "kube-dns-upstream"))
    outcome = Adviser(found, SETTINGS, Failures(), 1).evaluated(found, key)
    assert isinstance(outcome, ServiceCosts)
    loss = outcome.score.worst.loss
    assert (float(loss.lower), float(loss.upper)) == (0.0, 0.5)
    assert (outcome.score.survives, outcome.score.at_most) == (1, 3)


@pytest.mark.parametrize(("ends", "lost"), [((0, 1), 0.0), ((0, 0), 1.0), ((0, 0, 0, 1), 0.25)])
def test_a_proxy_fails_when_three_pods_in_turn_are_dead(ends: tuple[int, ...], lost: float) -> None:
    found = after("pod-ips", cluster(*ends))
    assert isinstance(found, ClusterState)
    outcome = Adviser(found, SETTINGS, Failures(), 1).evaluated(found, KEY)
    assert isinstance(outcome, ServiceCosts)
    assert float(outcome.score.worst.loss.upper) == pytest.approx(lost, abs=1e-12)


_ODD: list[Any] = [None, "x", [None], {"a": 1}]


@pytest.mark.parametrize("odd", _ODD, ids=str)
@pytest.mark.parametrize(
    "path",
    [
        ("metadata", "labels"),
        ("metadata", "annotations"),
        ("spec",),
        ("spec", "clusterIP"),
        ("spec", "clusterIPs"),
        ("status", "addresses"),
        ("status", "conditions"),
        ("spec", "taints"),
        ("endpoints",),
        ("ports",),
    ],
    ids="/".join,
)
def test_what_is_odd_in_objects_breaks_no_measure(path: tuple[str, ...], odd: object) -> None:
    """Files can be edited; what cannot be read is refused, or as if it were not there."""
    items = copy.deepcopy([node("master0", 7, "a"), *cluster(0, 0), *_api("master")[-2:]])
    for item in items:
        for at in range(len(path)):
            if item.get(path[0]) is not None and at == len(path) - 1:
                place = item if not at else item[path[0]]
                if path[-1] in place:
                    place[path[-1]] = odd
    for name in USUAL:
        for key in (KEY, API):
            after(name, items, key)


def test_a_proxy_may_fail_by_pods_that_nobody_places() -> None:
    items = cluster(0, 1, 1)
    items[-1]["endpoints"][1] = {"addresses": ["198.51.100.7"], "conditions": {"ready": True}}
    found = after("pod-ips", items)
    assert isinstance(found, ClusterState)
    outcome = Adviser(found, SETTINGS, Failures(dead=("worker0", "worker1")), 1).evaluated(
        found, KEY
    )
    assert isinstance(outcome, ServiceCosts)
    loss = outcome.score.worst.loss
    assert (float(loss.lower), float(loss.upper)) == (0.0, 1.0)
