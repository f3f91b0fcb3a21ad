"""What an edit of a generated cluster implies is what differs, and nothing else."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.diff.changes import Change
from analyzer.kubeproxy.diff.difference import Conclusion, Difference
from analyzer.kubeproxy.diff.side import DumpSide
from analyzer.kubeproxy.generate import RulesLayout
from analyzer.kubeproxy.view import FrontendKind, Source, each_network
from tests.support.clusters import GeneratedCluster, clusters, one_service
from tests.support.comparing import (
    by_route,
    compared,
    in_any_order,
    mirrored,
    only_change,
    side_of_cluster,
    sources,
)
from tests.support.effort import examples
from tests.support.layouts import PROMISED

every_layout = pytest.mark.parametrize("layout", PROMISED, ids=lambda layout: layout.value)
#: Of each layout a whole cluster is made twice, and read twice.
HINTS: Final = ("service.kubernetes.io/topology-mode", "service.kubernetes.io/topology-aware-hints")


def edited(cluster: GeneratedCluster, items: list[Any]) -> GeneratedCluster:
    return replace(cluster, items=items)


def of_kind(items: list[Any], kind: str) -> list[Any]:
    return [item for item in items if item["kind"] == kind]


def difference_of(a: GeneratedCluster, b: GeneratedCluster) -> Difference:
    return compared(side_of_cluster(a), side_of_cluster(b), a.family)


# --- any cluster ------------------------------------------------------------------


@every_layout
def test_a_cluster_does_not_differ_from_itself(layout: RulesLayout) -> None:
    @examples(3, 100)
    @given(clusters(layout))
    def check(cluster: GeneratedCluster) -> None:
        found = difference_of(cluster, cluster)
        assert (found.changes, found.verdict) == ((), Conclusion.SAME)

    check()


@every_layout
def test_to_compare_is_antisymmetric(layout: RulesLayout) -> None:
    @examples(3, 100)
    @given(clusters(layout), clusters(layout))
    def check(one: GeneratedCluster, other: GeneratedCluster) -> None:
        other = replace(other, family=one.family, node=one.node, flags=one.flags)
        a, b = side_of_cluster(one), side_of_cluster(other)
        there, back = compared(a, b, one.family), compared(b, a, one.family)
        assert in_any_order(back) == in_any_order(mirrored(there))

    check()


def naive(side: DumpSide) -> dict[object, object]:
    """Return what each route of a dump is like, as a caller of the view sees it."""
    return {
        (s.name.text, s.protocol, r.frontend.address, r.frontend.port, r.source, r.network): {
            (share.endpoint, share.masquerade, round(float(share.share.lower), 6))
            for share in r.shares
        }
        for s in side.view.services
        for r in each_network(s.routes)
    }


@every_layout
def test_an_endpoint_that_leaves_is_all_that_differs(layout: RulesLayout) -> None:
    """Held against the two views, route by route; only one Service may differ."""

    @examples(3, 100)
    @given(clusters(layout), st.data())
    def check(cluster: GeneratedCluster, data: st.DataObject) -> None:
        items = copy.deepcopy(cluster.items)
        filled = [s for s in of_kind(items, "EndpointSlice") if s["endpoints"]]
        if not filled:
            return
        chosen = data.draw(st.sampled_from(filled))
        chosen["endpoints"].pop(data.draw(st.integers(0, len(chosen["endpoints"]) - 1)))
        a, b = side_of_cluster(cluster), side_of_cluster(edited(cluster, items))
        found = compared(a, b, cluster.family)
        owner = f"{chosen['metadata']['namespace']}/"
        owner += chosen["metadata"]["labels"]["kubernetes.io/service-name"]
        assert {c.name.text.partition(":")[0] for c in found.changes} <= {owner}
        before, after = naive(a), naive(b)
        told = {
            (c.name.text, c.protocol, w.frontend.address, w.frontend.port, w.source, w.network)
            for c in found.changes
            for r in c.routes
            for w in r.ways
        }
        unlike = {key for key in before.keys() & after.keys() if before[key] != after[key]}
        assert unlike <= told
        # Beside these only those of frontends that are refused in one of the two have routes.
        assert told & before.keys() & after.keys() <= unlike | refused(a) | refused(b)

    check()


def refused(side: DumpSide) -> set[object]:
    """Return the routes on which not all flows reach an endpoint."""
    return {
        (s.name.text, s.protocol, r.frontend.address, r.frontend.port, r.source, r.network)
        for s in side.view.services
        for r in each_network(s.routes)
        if not r.shares or not r.is_exact
    }


def without_hints(cluster: GeneratedCluster, layout: RulesLayout) -> GeneratedCluster:
    """Return a cluster whose endpoints are for everybody, and a kube-proxy of a version."""
    items = copy.deepcopy(cluster.items)
    for each in of_kind(items, "Service"):
        for annotation in HINTS:
            each["metadata"].get("annotations", {}).pop(annotation, None)
    for each in of_kind(items, "EndpointSlice"):
        for endpoint in each["endpoints"]:
            endpoint.pop("hints", None)
    return replace(cluster, items=items, layout=layout)


@examples(3, 100)
@given(clusters(RulesLayout.V1_30))
def test_without_hints_two_later_versions_are_the_same(cluster: GeneratedCluster) -> None:
    a, b = (
        side_of_cluster(without_hints(cluster, layout))
        for layout in (RulesLayout.V1_30, RulesLayout.V1_36)
    )
    found = compared(a, b, cluster.family)
    # Where nothing tells which addresses pods have, source ranges may be theirs or not.
    knows_pods = a.view.pod_sources and b.view.pod_sources
    assert found.verdict in (
        {Conclusion.SAME} if knows_pods else {Conclusion.SAME, Conclusion.UNKNOWN}
    )


def tame(cluster: GeneratedCluster) -> set[str]:
    """Return the Services that every version since 1.20 treats alike."""
    unlike = {
        (s["metadata"]["namespace"], s["metadata"]["labels"]["kubernetes.io/service-name"])
        for s in of_kind(cluster.items, "EndpointSlice")
        for e in s["endpoints"]
        if e["conditions"].get("terminating") or e.get("hints")
    }
    return {
        f"{s['metadata']['namespace']}/{s['metadata']['name']}"
        for s in of_kind(cluster.items, "Service")
        if (s["metadata"]["namespace"], s["metadata"]["name"]) not in unlike
        and s["spec"]["internalTrafficPolicy"] == "Cluster"
        and s["spec"].get("externalTrafficPolicy") != "Local"
        and not s["spec"].get("externalIPs")
        and not s["spec"].get("loadBalancerSourceRanges")
    }


@examples(3, 100)
@given(clusters(RulesLayout.V1_20))
def test_an_older_version_differs_by_what_it_does_not_know(cluster: GeneratedCluster) -> None:
    found = difference_of(cluster, replace(cluster, layout=RulesLayout.V1_36))
    assert not {c.name.text.partition(":")[0] for c in found.changes} & tame(cluster)


# --- one Service, one edit ----------------------------------------------------------


def service_of(items: list[Any]) -> Any:
    (found,) = of_kind(items, "Service")
    return found


def after(cluster: GeneratedCluster, **spec: Any) -> GeneratedCluster:
    """Return a cluster whose Service is another."""
    items = copy.deepcopy(cluster.items)
    service_of(items)["spec"] |= spec
    return edited(cluster, items)


def kinds(found: Difference) -> set[tuple[str, str]]:
    """Return kind of frontend and source of the routes that differ."""
    return {(kind, source) for (kind, _, source), _ in by_route(only_change(found))}


def changes(found: Difference) -> Iterator[Change]:
    yield from (each.change for each in only_change(found).routes)


@every_layout
@pytest.mark.parametrize("endpoints", [2, 3, 10])
def test_an_endpoint_less_is_one_of_n_less_for_everybody(
    layout: RulesLayout, endpoints: int
) -> None:
    whole = one_service(layout, endpoints=endpoints, plain=True)
    items = copy.deepcopy(whole.items)
    (of_it,) = of_kind(items, "EndpointSlice")
    lost = of_it["endpoints"].pop(1)["addresses"][0]
    (change,) = changes(difference_of(whole, edited(whole, items)))
    assert [str(e.endpoint.address) for e in change.endpoints] == [lost]
    assert [e.b for e in change.endpoints] == [None]
    assert change.each == (endpoints, endpoints - 1)
    assert (change.masquerade, change.otherwise, change.unknown) == ((), None, ())


@every_layout
def test_a_service_more_is_added_with_its_frontends(layout: RulesLayout) -> None:
    whole = one_service(layout, endpoints=2)
    items = copy.deepcopy(whole.items)
    more = copy.deepcopy([i for i in items if i["kind"] in {"Service", "EndpointSlice"}])
    for item in more:
        item["metadata"]["name"] = item["metadata"]["name"].replace("a", "b", 1)
    more[1]["metadata"]["labels"]["kubernetes.io/service-name"] = "b"
    more[0]["spec"] |= {
        "clusterIP": "10.96.0.2",
        "clusterIPs": ["10.96.0.2"],
        "externalIPs": ["198.51.100.2"],
    }
    more[0]["spec"]["ports"][0]["nodePort"] = 30_001
    more[0]["status"] = {"loadBalancer": {"ingress": [{"ip": "198.18.0.2"}]}}
    change = only_change(difference_of(whole, edited(whole, items + more)))
    assert (change.name.text, change.a) == ("default/b:http", None)
    assert {(f.kind.value, str(f)) for f in change.added} == {
        ("ClusterIP", "10.96.0.2:80"),
        ("ExternalIP", "198.51.100.2:80"),
        ("LoadBalancerIP", "198.18.0.2:80"),
        ("NodePort", "*:30001"),
    }


@every_layout
def test_a_frontend_less_is_gone_and_the_others_stay(layout: RulesLayout) -> None:
    whole = one_service(layout, endpoints=2)
    change = only_change(difference_of(whole, after(whole, externalIPs=[])))
    assert [(f.kind, str(f)) for f in change.gone] == [
        (FrontendKind.EXTERNAL_IP, "198.51.100.1:80")
    ]
    assert (change.added, change.routes, change.affinity) == ((), (), None)


@every_layout
def test_affinity_that_is_taken_away_is_all_that_differs(layout: RulesLayout) -> None:
    whole = one_service(layout, endpoints=3)
    change = only_change(difference_of(whole, after(whole, sessionAffinity="None")))
    assert (change.affinity, change.routes, change.gone) == ((600, None), (), ())


@pytest.mark.parametrize(
    "layout", [RulesLayout.V1_30, RulesLayout.V1_36], ids=lambda each: each.value
)
def test_a_local_policy_inside_concerns_the_cluster_ip_alone(layout: RulesLayout) -> None:
    whole = one_service(layout, endpoints=6)
    found = difference_of(whole, after(whole, internalTrafficPolicy="Local"))
    assert {kind for kind, _ in kinds(found)} == {"ClusterIP"}
    assert sources(only_change(found)) == set(Source)
    for change in changes(found):
        assert change.each == (6, 2)
        assert len([e for e in change.endpoints if e.b is None]) == 4


@every_layout
def test_a_policy_outside_concerns_those_who_come_from_there(layout: RulesLayout) -> None:
    whole = one_service(layout, endpoints=6)  # two of them here, and Local
    found = difference_of(whole, after(whole, externalTrafficPolicy="Cluster"))
    named = kinds(found)
    assert "ClusterIP" not in {kind for kind, _ in named}
    # Up to 1.21 external IPs ask by which device of a bridge a flow comes.
    outside = [
        change
        for (kind, _, source), change in by_route(only_change(found))
        if source == "external" and (kind != "ExternalIP" or layout is not RulesLayout.V1_20)
    ]
    assert outside
    for change in outside:
        assert change.each == (2, 6)
        # Whoever came to a local endpoint kept its address; now the node gives its own.
        assert {(m.a, m.b) for m in change.masquerade} == {(False, True)}
