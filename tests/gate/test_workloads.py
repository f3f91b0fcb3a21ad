from __future__ import annotations

import json
from typing import Any

import pytest

from analyzer.errors import ParseError
from analyzer.gate.workloads import Workload, workloads
from analyzer.parsers.manifests import manifests
from tests.support.gated import template, workload


def _read(*items: Any) -> list[Workload]:
    text = json.dumps({"kind": "List", "items": [*items]})
    return workloads(manifests([("m.json", text.encode())]))


def test_a_workload_has_its_pods_with_what_its_controller_adds() -> None:
    deployment, daemons = _read(
        workload("web", 3, template("web")), workload("agent", None, template("agent"))
    )
    assert (deployment.name, deployment.replicas) == ("deployment default/web", 3)
    assert deployment.labels == {"app": "web", "pod-template-hash": "web"}
    assert daemons.replicas is None
    keys = {each["key"] for each in daemons.spec["tolerations"]}
    assert "node.kubernetes.io/unschedulable" in keys
    assert "node.kubernetes.io/network-unavailable" not in keys


def test_an_autoscaler_may_leave_fewer() -> None:
    scaler = {
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "s"},
        "spec": {
            "minReplicas": 2,
            "maxReplicas": 7,
            "scaleTargetRef": {"kind": "Deployment", "name": "web"},
        },
    }
    (found,) = _read(workload("web", 9, template("web")), scaler)
    assert (found.replicas, found.most) == (2, 7)
    assert found.scaler is not None


@pytest.mark.parametrize(
    ("item", "says"),
    [
        ({"kind": "Deployment", "metadata": {"name": "a"}}, "no pod spec"),
        (workload("a", 1, template("b")), "does not match the labels of its own pods"),
        (workload("a", 1, {"metadata": {"labels": {"a": 1}}, "spec": {}}), "put quotes around"),
    ],
)
def test_a_malformed_one_is_refused_with_its_place(item: Any, says: str) -> None:
    with pytest.raises(ParseError, match=says) as refused:
        _read(item)
    assert str(refused.value.location) == "m.json:1"
