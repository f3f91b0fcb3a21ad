"""Who stands behind endpoints: owners, tolerations, volumes, managers of slices, nodes."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

import pytest

from analyzer.model.ternary import Ternary
from analyzer.model.workloads import ManagedPod, NodeFacts, ServiceFacts
from analyzer.parsers.workloads import workloads_of

UNREACHABLE = "node.kubernetes.io/unreachable"


def pod(owner: str | None = "ReplicaSet", **spec: Any) -> dict[str, Any]:
    owners = [] if owner is None else [{"kind": owner, "name": "x", "controller": True}]
    return {
        "kind": "Pod",
        "metadata": {"namespace": "ns", "name": "p", "ownerReferences": owners},
        "spec": spec,
    }


def of(*items: dict[str, Any]) -> ManagedPod:
    return workloads_of(items).pods["ns/p"]


def claim(name: str = "data") -> dict[str, Any]:
    return {"volumes": [{"persistentVolumeClaim": {"claimName": name}}]}


def bound(volume: str = "pv1") -> dict[str, Any]:
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": "ns", "name": "data"},
        "spec": {"volumeName": volume},
    }


def volume(**spec: Any) -> dict[str, Any]:
    return {"kind": "PersistentVolume", "metadata": {"name": "pv1"}, "spec": spec}


@pytest.mark.parametrize("owner", ["ReplicaSet", "DaemonSet", "StatefulSet", "Node", None])
def test_the_controller_is_the_owner(owner: str | None) -> None:
    assert of(pod(owner)).owner == owner


def test_an_owner_that_controls_nothing_is_none() -> None:
    item = pod()
    del item["metadata"]["ownerReferences"][0]["controller"]
    assert of(item).owner is None


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        ([], 0),
        ([{"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute"}], None),
        ([{"key": UNREACHABLE, "operator": "Exists", "tolerationSeconds": 300}], 300),
        ([{"operator": "Exists"}], None),
        ([{"operator": "Exists", "effect": "NoSchedule"}], 0),
        ([{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}], 0),
        ([{"key": UNREACHABLE, "value": "x"}], 0),
        ([{"key": UNREACHABLE, "tolerationSeconds": -5}], 0),
        ([{"operator": "Exists"}, {"key": UNREACHABLE, "tolerationSeconds": 7}], 7),
        (
            [
                {"key": UNREACHABLE, "operator": "Exists", "tolerationSeconds": 300},
                {"key": UNREACHABLE, "operator": "Exists", "tolerationSeconds": 20},
            ],
            20,
        ),
        ([{"key": UNREACHABLE, "tolerationSeconds": "300"}], None),
        (["odd", None], 0),
    ],
)
def test_how_long_a_pod_stays(tolerations: list[Any], seconds: int | None) -> None:
    assert of(pod(tolerations=tolerations)).tolerates == seconds


@pytest.mark.parametrize(
    ("items", "wanted"),
    [
        ([pod()], Ternary.FALSE),
        ([pod(volumes=[{"emptyDir": {}}, {"hostPath": {"path": "/x"}}])], Ternary.FALSE),
        ([pod(**claim())], Ternary.UNKNOWN),  # neither claim nor volume is listed
        ([pod(**claim()), bound()], Ternary.UNKNOWN),
        ([pod(**claim()), bound(), volume(nfs={"server": "x"})], Ternary.FALSE),
        ([pod(**claim()), bound(), volume(local={"path": "/x"})], Ternary.TRUE),
        ([pod(**claim()), bound(), volume(hostPath={"path": "/x"})], Ternary.TRUE),
        (
            [
                pod(**claim()),
                bound(),
                volume(csi={}, nodeAffinity={"required": {"nodeSelectorTerms": [{}]}}),
            ],
            Ternary.UNKNOWN,  # of a zone, perhaps
        ),
        ([pod(volumes=[{"ephemeral": {"volumeClaimTemplate": {}}}])], Ternary.UNKNOWN),
        ([pod(nodeSelector={"kubernetes.io/os": "linux"})], Ternary.FALSE),
        ([pod(nodeSelector={"kubernetes.io/hostname": "a"})], Ternary.UNKNOWN),
        ([pod(hostNetwork=True)], Ternary.UNKNOWN),
        ([pod(containers=[{"ports": [{"hostPort": 80}]}])], Ternary.UNKNOWN),
        ([pod(containers=[{"ports": [{"containerPort": 80}]}])], Ternary.FALSE),
        (
            [pod(topologySpreadConstraints=[{"whenUnsatisfiable": "DoNotSchedule"}])],
            Ternary.UNKNOWN,
        ),
        (
            [pod(topologySpreadConstraints=[{"whenUnsatisfiable": "ScheduleAnyway"}])],
            Ternary.FALSE,
        ),
        *[
            (
                [pod(affinity={kind: {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}})],
                Ternary.UNKNOWN,
            )
            for kind in ("nodeAffinity", "podAffinity", "podAntiAffinity")
        ],
    ],
)
def test_whether_a_pod_can_go_elsewhere(items: list[dict[str, Any]], wanted: Ternary) -> None:
    assert of(*items).is_bound is wanted


def test_pods_that_have_ended_stand_behind_nothing() -> None:
    assert workloads_of([pod() | {"status": {"phase": "Failed"}}]).pods == {}


def a_slice(manager: str | None) -> dict[str, Any]:
    labels = {"kubernetes.io/service-name": "a"}
    if manager is not None:
        labels["endpointslice.kubernetes.io/managed-by"] = manager
    return {
        "kind": "EndpointSlice",
        "metadata": {"namespace": "ns", "name": "s", "labels": labels},
        "endpoints": [{"addresses": ["10.0.0.1"]}],
    }


def service(**spec: Any) -> dict[str, Any]:
    return {"kind": "Service", "metadata": {"namespace": "ns", "name": "a"}, "spec": spec}


@pytest.mark.parametrize(
    ("manager", "by_hand", "by_others"),
    [
        ("endpointslice-controller.k8s.io", False, False),
        ("endpointslicemirroring-controller.k8s.io", True, False),
        (None, True, False),
        ("somebody.example", False, True),
    ],
)
def test_who_manages_a_slice(manager: str | None, by_hand: bool, by_others: bool) -> None:
    found = workloads_of([a_slice(manager), service(selector={"app": "a"})]).services["ns/a"]
    listed = frozenset([ip_address("10.0.0.1")])
    assert found == ServiceFacts(
        has_selector=True,
        publishes_not_ready=False,
        by_hand=listed if by_hand else frozenset(),
        by_others=listed if by_others else frozenset(),
    )


def test_what_a_service_says_of_itself() -> None:
    found = workloads_of([service(publishNotReadyAddresses=True)]).services["ns/a"]
    assert found == ServiceFacts(has_selector=False, publishes_not_ready=True)


def test_what_nodes_say() -> None:
    items = [
        {
            "kind": "Node",
            "metadata": {
                "name": "a",
                "labels": {
                    "topology.kubernetes.io/region": "r",
                    "topology.kubernetes.io/zone": "z",
                },
            },
            "spec": {"providerID": "aws:///z/i-1"},
            "status": {"nodeInfo": {"kubeletVersion": "v1.33.1+k3s1"}},
        },
        {
            "kind": "Node",
            "metadata": {"name": "b", "labels": {"node.kubernetes.io/exclude-disruption": ""}},
            "status": {"nodeInfo": {"kubeletVersion": "none"}},
        },
        {"kind": "Node", "metadata": {"name": 5, "labels": []}},
    ]
    assert workloads_of(items).nodes == {
        "a": NodeFacts(zone="r/z", may_be_deleted=True, counts=True, kubelet=(1, 33)),
        "b": NodeFacts(zone="", may_be_deleted=False, counts=False, kubelet=None),
    }
