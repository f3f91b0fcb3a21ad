"""Rules that kube-proxy has just written do not drift, whatever the cluster."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address, ip_network
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from analyzer.cluster.drift import Drifted, drift
from analyzer.cluster.drift_services import ObjectFacts
from analyzer.cluster.store import DONE, NodeRow
from analyzer.kubeproxy.generate import RulesLayout
from analyzer.kubeproxy.predict.cluster import predict
from analyzer.kubeproxy.predict.every_node import At, EveryNode
from analyzer.kubeproxy.predict.settings import GENERATED, ClusterSettings
from analyzer.kubeproxy.predict.versions import version_from_text
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.view import ServicePort
from analyzer.parsers.kubernetes import cluster_of
from analyzer.parsers.services import parse_services
from tests.support.cluster_reading import objects_file, reader
from tests.support.clusters import GeneratedCluster, clusters
from tests.support.effort import examples
from tests.support.pod_networks import NODES

LAYOUTS = (RulesLayout.V1_20, RulesLayout.V1_24, RulesLayout.V1_30, RulesLayout.V1_36)


def drifted(cluster: GeneratedCluster, mode: ProxyMode) -> Drifted:
    """Return what differs at the nodes of a cluster, by its objects."""
    with TemporaryDirectory() as folder:
        worker = reader(objects_file(Path(folder), cluster.items), shares=False)
    shown: dict[object, list[At]] = {}
    for node in NODES:
        services: list[ServicePort] = []
        if mode is ProxyMode.NFTABLES:
            services += worker.shown(replace(cluster, node=node).nft.encode(), node)
        else:
            for family in cluster.families:
                dump = replace(cluster, node=node, family=family).dump
                services += worker.shown(dump.encode(), node)
        for each in services:
            key = each.name.text, each.protocol, each.version
            shown.setdefault(key, []).append(At(each, frozenset([node])))
    known = cluster_of(cluster.items, "objects")
    flags = dict(flag.partition("=")[::2] for flag in cluster.flags)
    cidr = flags.get("--cluster-cidr")
    settings = ClusterSettings(
        mode=mode,
        version=version_from_text(cluster.layout.value),
        cluster_cidrs=() if cidr is None else tuple(map(ip_network, cidr.split(","))),
        masquerade_all="--masquerade-all" in flags,
    )
    wanted, _ = predict(cluster.items, known, settings, 1)
    own = {address for node in known.nodes.values() for address in node.addresses}
    rows = [NodeRow(node=node, source=node, state=DONE, mode=mode.value) for node in NODES]
    return drift(
        rows,
        [EveryNode(at=tuple(at)) for at in shown.values()],
        wanted,
        ObjectFacts(
            services={
                (each.name, each.protocol, family): each
                for family in cluster.families
                for each in parse_services(cluster.items, family)
            },
            owner=lambda _: None,
            place=lambda address: known.placement(address).node,
        ),
        own.__contains__,
    )


@examples(8, 300)
@given(data=st.data())
def test_what_kube_proxy_has_just_written_does_not_drift(data: st.DataObject) -> None:
    layout = data.draw(st.sampled_from(LAYOUTS))
    modes = [*GENERATED] if version_from_text(layout.value).has_nftables else [ProxyMode.IPTABLES]
    cluster = data.draw(clusters(layout))
    found = drifted(cluster, data.draw(st.sampled_from(modes)))
    assert [(f.drift.value, f.node, f.service, f.what) for f in found.findings] == []
    # Where nothing tells which sources are pods, one may be the endpoint itself: on each node that
    # is open for its own endpoints.
    names_pods = any(each.startswith("--cluster-cidr") for each in cluster.flags)
    if (names_pods and "--masquerade-all" not in cluster.flags) or podcidrs_are_used(cluster):
        assert found.not_judged == ()


def podcidrs_are_used(cluster: GeneratedCluster) -> bool:
    """Tell whether each endpoint that is not at a node has an address of some podCIDR."""
    nodes = [each for each in cluster.items if each["kind"] == "Node"]
    hosts = {a["address"] for each in nodes for a in each["status"]["addresses"]}
    networks = [ip_network(text) for each in nodes for text in each["spec"]["podCIDRs"]]
    return all(
        str(address) in hosts or any(address in network for network in networks)
        for item in cluster.items
        for endpoint in item.get("endpoints", ())
        for address in map(ip_address, endpoint["addresses"])
    )
