"""Whatever cluster it is, nothing is found in the rules that kube-proxy has just written."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.kubeproxy.check.findings import Checked
from analyzer.kubeproxy.check.invariants import check
from analyzer.kubeproxy.generate import RulesLayout
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.parsers.api_objects import decode
from analyzer.parsers.services import parse_services
from tests.support.clusters import GeneratedCluster, clusters, one_service
from tests.support.effort import examples
from tests.support.parsed_objects import parse_objects
from tests.support.pod_networks import NODES
from tests.support.reading import read_ruleset


def checked(made: GeneratedCluster, *, told: bool = True) -> Checked:
    """Return what is found in the dump of a cluster, with its objects or without."""
    given = [("objects", json.dumps({"kind": "List", "items": made.items}).encode())]
    return check(
        read_ruleset(made.dump.encode(), "dump"),
        ProxyMode.IPTABLES,
        parse_services(decode(given), made.family) if told else (),
        node=made.node if told else None,
        zone=parse_objects(given).nodes[made.node].zone if told else None,
    )


def said(found: Checked) -> list[tuple[str, str, int | None]]:
    return [(each.code, each.message, each.line) for each in found.diagnostics]


@pytest.mark.parametrize("layout", RulesLayout, ids=lambda layout: layout.value)
@examples(4, 300)
@given(data=st.data(), told=st.booleans())
def test_nothing_is_found_in_the_rules_of_any_cluster(
    layout: RulesLayout, data: st.DataObject, *, told: bool
) -> None:
    cluster = data.draw(clusters(layout))
    found = checked(cluster, told=told)
    # There is no kubelet; 1.22 writes chains of endpoints that are not ready; up to 1.23 nothing
    # leads to the chain of a local policy where a balancer has neither addresses nor NodePorts.
    expected = {"missing-chain" if layout.minor < RulesLayout.V1_20.minor else "no-drop-mark"}
    expected |= {"affinity-only", "empty-chain"} if layout is RulesLayout.V1_22 else set()
    expected |= {"unreachable-chain"} if layout.minor <= RulesLayout.V1_23.minor else set()
    assert {each.code for each in found.diagnostics} <= expected, said(found)


def test_nothing_is_found_where_a_local_policy_is_beside_hints() -> None:
    """The chain for external flows draws those of the zone, and not all on the node."""
    cluster = one_service(RulesLayout.V1_27, endpoints=6)
    items = copy.deepcopy(cluster.items)
    for item in items:
        if item["kind"] == "Node":
            item["metadata"]["labels"] = {"topology.kubernetes.io/zone": "a"}
        elif item["kind"] == "Service":
            item["spec"] |= {"internalTrafficPolicy": "Local", "externalTrafficPolicy": "Cluster"}
            item["metadata"]["annotations"] = {"service.kubernetes.io/topology-mode": "Auto"}
        else:
            for at, each in enumerate(item["endpoints"]):
                each["hints"] = {"forZones": [{"name": "ab"[at % 2]}]}
    assert said(checked(replace(cluster, items=items))) == []


def test_an_address_may_be_written_in_several_ways() -> None:
    """Of two Services of custom EndpointSlices; the chain's name is the hash of either."""
    made = GeneratedCluster(_spelt("fd00:0:0::5", "fd00::5"), (), RulesLayout.V1_20, 6, NODES[0])
    assert said(checked(made)) == []


def _spelt(*addresses: str) -> list[Any]:
    """Return a node, and a Service with one endpoint for each of these addresses."""
    items: list[Any] = [
        {
            "kind": "Node",
            "metadata": {"name": NODES[0], "labels": {}},
            "spec": {},
            "status": {"addresses": [{"type": "InternalIP", "address": "fd00:168::1"}]},
        }
    ]
    for at, address in enumerate(addresses, 1):
        meta = {"name": f"svc-{at}", "namespace": "default"}
        port = {"name": "", "protocol": "TCP", "port": 80}
        spec = {"type": "ClusterIP", "clusterIP": f"fd00:96::{at}", "ports": [port]}
        labels = {"kubernetes.io/service-name": f"svc-{at}"}
        items += [
            {"kind": "Service", "metadata": meta, "spec": spec},
            {
                "kind": "EndpointSlice",
                "addressType": "IPv6",
                "metadata": {**meta, "labels": labels},
                "endpoints": [{"addresses": [address], "conditions": {}}],
                "ports": [{**port, "port": 8080}],
            },
        ]
    return items
