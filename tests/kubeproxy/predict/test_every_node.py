"""What is predicted from objects is what the generated rules of every node say, walked in whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.generate import FLAGS, RulesLayout, mixed, node_name, service_ports
from analyzer.kubeproxy.generate.reach import reach
from analyzer.kubeproxy.names import service_name
from analyzer.kubeproxy.predict.every_node import At, EveryNode
from analyzer.kubeproxy.predict.reaches import Reaches
from analyzer.kubeproxy.predict.settings import GENERATED, ClusterSettings, LocalMode, proxies
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.view import Frontend, FrontendKind, Route, ServicePort, Source
from analyzer.model.endings import Ending, EndKind
from analyzer.model.probability import ALWAYS, NEVER, Bounds
from analyzer.model.value import replace
from tests.support.clusters import GeneratedCluster, clusters
from tests.support.effort import examples
from tests.support.layouts import NFTABLES, PROMISED
from tests.support.pod_networks import NODES
from tests.support.predictions import (
    cluster_of,
    differences,
    predicted,
    read,
    settings_of,
    uses_networks,
)

CASES = [
    (layout, mode)
    for layout in RulesLayout
    for mode in GENERATED
    if mode is ProxyMode.IPTABLES or layout in NFTABLES
]
#: Those of one version of each kind of chains.
NETWORKED = [each for each in CASES if each[0] in (*PROMISED, RulesLayout.V1_14, RulesLayout.V1_23)]
every_case = pytest.mark.parametrize(
    ("layout", "mode"), CASES, ids=[f"{layout.value}-{mode.value}" for layout, mode in CASES]
)


def check(cluster: GeneratedCluster, settings: ClusterSettings) -> None:
    found = predicted(cluster.items, settings, cluster.family)
    knows_pods = uses_networks(cluster_of(cluster.items))
    for node, services in read(cluster.items, settings, cluster.family).items():
        told = [*differences(found, node, services, knows_pods=knows_pods)]
        assert not told, told


@every_case
@examples(2, 200)
@given(data=st.data())
def test_prediction_is_what_rules_of_each_node_say(
    layout: RulesLayout, mode: ProxyMode, data: st.DataObject
) -> None:
    cluster = data.draw(clusters(layout))
    check(cluster, settings_of(layout, cluster.flags, mode))


@pytest.mark.parametrize(
    ("layout", "mode"),
    NETWORKED,
    ids=[f"{layout.value}-{mode.value}" for layout, mode in NETWORKED],
)
@examples(2, 100)
@given(data=st.data())
def test_prediction_is_what_rules_say_where_each_node_has_a_network(
    layout: RulesLayout, mode: ProxyMode, data: st.DataObject
) -> None:
    cluster = data.draw(clusters(layout))
    texts = {4: "10.244.{}.0/24", 6: "fd00:244:0:{}::/64"}
    numbers = [item for item in cluster.items if item["kind"] == "Node"]
    for at, item in enumerate(numbers):
        item["spec"]["podCIDRs"] = [texts[cluster.family].format(at)]
    settings = settings_of(layout, cluster.flags, mode)
    if data.draw(st.booleans()):
        settings = replace(settings, local_mode=LocalMode.NODE_CIDR)
        if data.draw(st.booleans()):
            del numbers[0]["spec"]["podCIDRs"]
    check(cluster, settings)


def service(name: str, at: int, addresses: Mapping[str, str | None], **spec: Any) -> list[Any]:
    """Return a Service with a load balancer, and its endpoints with their nodes, if known."""
    port = {"name": "", "protocol": "TCP", "port": 80, "nodePort": 30_000 + at}
    made = {
        "type": "LoadBalancer",
        "clusterIP": f"10.96.0.{at}",
        "clusterIPs": [f"10.96.0.{at}"],
        "ports": [port],
        "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
        "externalTrafficPolicy": "Cluster",
        **spec,
    }
    meta = {"name": name, "namespace": "default"}
    labels = {"kubernetes.io/service-name": name}
    return [
        {
            "kind": "Service",
            "metadata": meta,
            "spec": made,
            "status": {"loadBalancer": {"ingress": [{"ip": f"198.18.0.{at}"}]}},
        },
        {
            "kind": "EndpointSlice",
            "addressType": "IPv4",
            "metadata": {**meta, "labels": labels},
            "endpoints": [
                {
                    "addresses": [each],
                    "conditions": {},
                    **({} if node is None else {"nodeName": node}),
                }
                for each, node in addresses.items()
            ],
            "ports": [{**port, "port": 8080}],
        },
    ]


@pytest.mark.parametrize("mode", GENERATED, ids=lambda mode: mode.value)
@pytest.mark.parametrize("flags", [("--masquerade-all",), ()], ids=["all masqueraded", "not"])
def test_the_network_of_pods_may_be_named_in_rules_of_another_service_alone(
    mode: ProxyMode, flags: tuple[str, ...]
) -> None:
    """Pods have addresses of other nodes' networks, so that nothing else tells which are pods'."""
    nodes = [
        {
            "kind": "Node",
            "metadata": {"name": name, "labels": {}},
            "spec": {"podCIDRs": [f"10.244.{(at + 1) % 3}.0/24"]},
            "status": {"addresses": [{"type": "InternalIP", "address": f"192.168.0.{10 + at}"}]},
        }
        for at, name in enumerate(NODES)
    ]
    # At the third node the first Service has rules of another shape, and the second one the same.
    spec = {"loadBalancerSourceRanges": ["10.244.0.0/17"], "internalTrafficPolicy": "Local"}
    hosts = {"192.168.0.10": NODES[0], "192.168.0.11": NODES[1]}
    one = service("a", 1, hosts, **spec)
    other = service("b", 2, {"10.244.0.5": None}, externalTrafficPolicy="Local")
    gone = service("b", 2, {"10.244.2.7": NODES[2]})[1]  # where no network of that node's is
    gone["metadata"]["name"] = "b-gone"
    gone["endpoints"][0]["conditions"] = {"ready": False, "serving": False, "terminating": True}
    items = [*nodes, *one, *other, gone]
    flags = ("--cluster-cidr=10.244.0.0/16", *flags)
    check(
        GeneratedCluster(items, flags, RulesLayout.V1_36, 4, NODES[0]),
        settings_of(RulesLayout.V1_36, flags, mode),
    )


@examples(20, 2_000)
@given(
    data=st.data(),
    layout=st.sampled_from([each for each in RulesLayout if each.minor >= RulesLayout.V1_24.minor]),
)
def test_endpoints_of_every_node_are_those_of_one(data: st.DataObject, layout: RulesLayout) -> None:
    cluster = data.draw(clusters(layout))
    known = proxies(cluster.items, settings_of(layout, (), ProxyMode.IPTABLES), cluster.family)
    for service in service_ports(cluster.items, layout, cluster.family):
        reaches = Reaches(service, layout)
        for proxy in known.values():
            one, all_of_them = reach(service, proxy), reaches.at(proxy)
            assert all_of_them.cluster == tuple(t.endpoint for t in one.cluster)
            assert all_of_them.local == tuple(t.endpoint for t in one.local)
            assert reaches.any_at_all == one.any_at_all or not service.uses_cluster


@pytest.mark.parametrize("mode", GENERATED, ids=lambda mode: mode.value)
def test_services_of_all_kinds_are_predicted(mode: ProxyMode) -> None:
    items = mixed(40, 6)
    settings = settings_of(RulesLayout.V1_36, FLAGS, mode)
    found = predicted(items, settings, 4)
    every = {node_name(at) for at in range(6)}
    assert all(frozenset().union(*[each.nodes for each in of.at]) == every for of in found)
    assert any(len(each.at) > 1 for each in found)
    assert sum(len(each.at) == 1 for each in found) > 20
    services = read(items, settings, 4, node_name(3))[node_name(3)]
    assert not [*differences(found, node_name(3), services)]


def test_together_keeps_routes_that_differ_in_how_flows_end() -> None:
    """At one node flows are refused, at the other nothing is known of them; and alike ones once."""
    frontend = Frontend(FrontendKind.NODE_PORT, None, 30080)
    refused = ((Ending(kind=EndKind.REFUSED, how="reject"), Bounds(ALWAYS, ALWAYS)),)
    routes = [
        Route(frontend, Source.EXTERNAL, (), NEVER, astray=refused),
        Route(frontend, Source.EXTERNAL, (), ALWAYS),
        Route(frontend, Source.EXTERNAL, (), NEVER, astray=refused),
    ]
    at = tuple(
        At(
            ServicePort(
                name=service_name("ns/a"), protocol="tcp", frontends=(frontend,), routes=(each,)
            ),
            frozenset((f"node{number}",)),
        )
        for number, each in enumerate(routes)
    )
    assert list(EveryNode(at=at).together.routes) == routes[:2]
