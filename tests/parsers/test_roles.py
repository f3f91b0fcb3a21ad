"""Which nodes carry which part of the control plane."""

from __future__ import annotations

from typing import Any

import pytest

from analyzer.model.roles import Roles
from analyzer.parsers.roles import roles_of


def node(name: str, *labels: str) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": name, "labels": dict.fromkeys(labels, "")}}


def pod(component: str, on: str, namespace: str = "kube-system", **status: str) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {
            "name": f"{component}-{on}",
            "namespace": namespace,
            "labels": {"component": component, "tier": "control-plane"},
        },
        "spec": {"nodeName": on},
        "status": status,
    }


@pytest.mark.parametrize("label", ["control-plane", "master"])
def test_the_role_label_says_which_nodes_they_are(label: str) -> None:
    items = [node("b", f"node-role.kubernetes.io/{label}"), node("a"), node("c")]
    assert roles_of(items) == Roles(control_plane=("b",))


def test_static_pods_say_what_runs_where() -> None:
    found = roles_of(
        [
            pod("kube-apiserver", "b"),
            pod("kube-apiserver", "a"),
            pod("etcd", "c"),
            pod("kube-controller-manager", "a"),
            pod("kube-scheduler", "b"),
        ]
    )
    assert found == Roles(api=("a", "b"), etcd=("c",), controllers=("a",), schedulers=("b",))


def test_k3s_labels_the_nodes_of_etcd() -> None:
    role = "node-role.kubernetes.io/"
    items = [node("a", f"{role}control-plane", f"{role}etcd"), node("b", f"{role}control-plane")]
    assert roles_of(items) == Roles(control_plane=("a", "b"), etcd=("a",))


@pytest.mark.parametrize(
    "item",
    [
        pod("etcd", "a", namespace="default"),  # anybody's
        pod("etcd", "a", phase="Failed"),
        pod("etcd", ""),
        pod("nginx", "a"),
        {"kind": "Pod", "metadata": {"labels": {"component": ["etcd"]}}},
        {"kind": "Pod", "metadata": None},
        {"kind": "Node", "metadata": {"labels": ["node-role.kubernetes.io/etcd"]}},
        {"kind": "Node", "metadata": {"name": 1, "labels": {"node-role.kubernetes.io/etcd": ""}}},
    ],
)
def test_what_is_odd_or_nobodys_says_nothing(item: dict[str, Any]) -> None:
    assert roles_of([item]) == Roles()
