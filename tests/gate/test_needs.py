from __future__ import annotations

from typing import Any

import pytest

from analyzer.advice.takers import tolerates
from analyzer.gate.needs import conflicts, host_ports, requests, why_not
from analyzer.gate.nodes import scheduling_nodes

TAINT = ("key", "value", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "is_meant"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "key", "operator": "Exists"}, True),
        ({"key": "key", "value": "value"}, True),
        ({"key": "key", "value": "other"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "key", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "key", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"value": "other"}, False),
    ],
)
def test_a_toleration_is_of_a_taint_or_not(toleration: Any, is_meant: bool) -> None:
    assert tolerates(toleration, TAINT) is is_meant


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({}, "tainted key:NoExecute"),
        ({"tolerations": [{"operator": "Exists"}]}, ""),
        ({"nodeSelector": {"disk": "ssd"}}, "not selected by nodeSelector or nodeAffinity"),
    ],
)
def test_a_node_is_out_of_the_question_for_a_reason(spec: Any, why: str) -> None:
    taints = [{"key": "soft", "effect": "PreferNoSchedule"}, {"key": "key", "effect": "NoExecute"}]
    item = {"kind": "Node", "metadata": {"name": "n"}, "spec": {"taints": taints}}
    (node,) = scheduling_nodes([item])
    assert why_not(spec, node) == why


def _container(cpu: str, **more: Any) -> Any:
    return {"resources": {"requests": {"cpu": cpu}}, **more}


def test_requests_are_those_of_the_moment_that_needs_most() -> None:
    spec = {
        "containers": [_container("1"), {"resources": {"limits": {"cpu": "500m", "gpu": "1"}}}],
        "initContainers": [
            _container("200m", restartPolicy="Always"),
            _container("3"),
        ],
        "overhead": {"cpu": "10m"},
    }
    assert requests(spec) == {"cpu": 3210, "gpu": 1, "pods": 1}
    assert requests({"containers": [{}]}) == {"pods": 1}
    with pytest.raises(ValueError, match="cpu: 'much'"):
        requests({"containers": [_container("much")]})


def test_ports_of_the_host_conflict_by_address_and_protocol() -> None:
    def ports(**port: Any) -> Any:
        return host_ports({"containers": [{"ports": [{"containerPort": 80, **port}]}]})

    anywhere, here = ports(hostPort=80), ports(hostPort=80, hostIP="10.0.0.1")
    there, udp = ports(hostPort=80, hostIP="10.0.0.2"), ports(hostPort=80, protocol="UDP")
    assert conflicts(anywhere, here)
    assert conflicts(here, here)
    assert not conflicts(here, there)
    assert not conflicts(anywhere, udp)
    assert not ports()
    spec = {"hostNetwork": True, "containers": [{"ports": [{"containerPort": 80}]}]}
    assert conflicts(host_ports(spec), anywhere)


def test_what_a_pod_requests_as_one_counts_in_place_of_its_containers() -> None:
    whole = {"requests": {"cpu": "2", "gpu": "1"}, "limits": {"cpu": "4", "memory": "1Gi"}}
    spec = {"containers": [_container("1")], "overhead": {"cpu": "10m"}, "resources": whole}
    assert requests(spec) == {"cpu": 2010, "memory": 1 << 30, "pods": 1}
    # Of limits alone, what a container requests is what the pod does.
    spec["resources"] = {"limits": {"cpu": "4", "hugepages-2Mi": "2Mi"}}
    assert requests(spec) == {"cpu": 1010, "hugepages-2Mi": 1 << 21, "pods": 1}
