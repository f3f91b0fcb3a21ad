"""``gate`` where objects of kinds that it does not judge make pods of Services, or scale them."""

from __future__ import annotations

import pytest

from tests.support.commands import Command
from tests.support.gate_commands import TWO_ZONES, manifest, spread, web
from tests.support.gated import ZONE, scaler, service, template, workload

_HALF = ("--max-loss", "50%")
_PODS = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80}]}]},
}


def _object(kind: str, group: str, spec: object, namespace: str = "default") -> object:
    metadata = {"name": "other", "namespace": namespace}
    return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, "spec": spec}


def _served() -> list[object]:
    return [web(2, topologySpreadConstraints=[spread(topologyKey=ZONE)]), service("web")]


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (
            _object("Rollout", "argoproj.io", {"replicas": 20, "template": _PODS}),
            "it selects pods of Rollout default/other, a kind that is not judged",
        ),
        (
            _object("CronJob", "batch", {"jobTemplate": {"spec": {"template": _PODS}}}),
            "it selects pods of CronJob default/other, a kind that is not judged",
        ),
        (
            _object("ScaledObject", "keda.sh", {"scaleTargetRef": {"name": "web"}}),
            "ScaledObject default/other, a kind that is not judged, scales deployment default/web",
        ),
        (
            _object(
                "Rollout", "argoproj.io", {"workloadRef": {"kind": "Deployment", "name": "web"}}
            ),
            "Rollout default/other, a kind that is not judged, scales deployment default/web",
        ),
    ],
    ids=["template", "template in a template", "scaled", "taken over"],
)
def test_no_threshold_passes_on_what_makes_or_scales_its_pods(
    command: Command, other: object, says: str
) -> None:
    file = manifest(command, *_served(), other)
    result = command("gate", file, *TWO_ZONES, *_HALF)
    assert result.status == 1
    assert f"Not judged: default/web: {says}." in result.out
    assert command("gate", file, *TWO_ZONES, "--strict").status == 3


@pytest.mark.parametrize(
    "other",
    [
        _object("Rollout", "argoproj.io", {"template": _PODS}, "elsewhere"),
        _object(
            "Rollout", "argoproj.io", {"template": {**_PODS, "metadata": {"labels": {"app": "x"}}}}
        ),
        _object("ScaledObject", "keda.sh", {"scaleTargetRef": {"name": "x"}}),
        _object(
            "ScaledObject", "keda.sh", {"scaleTargetRef": {"kind": "StatefulSet", "name": "web"}}
        ),
        _object("ScaledObject", "keda.sh", {"scaleTargetRef": {"name": "web"}}, "elsewhere"),
    ],
    ids=["other namespace", "other labels", "other name", "other kind", "scales elsewhere"],
)
def test_what_is_of_others_changes_nothing(command: Command, other: object) -> None:
    result = command("gate", manifest(command, *_served(), other), *TWO_ZONES, *_HALF, "--strict")
    assert (result.status, result.err) == (0, "")


def test_an_autoscaler_that_scales_nothing_here_is_named(command: Command) -> None:
    file = manifest(command, *_served(), scaler("wbe", 2, 9))
    result = command("gate", file, *TWO_ZONES, *_HALF)
    says = (
        "HorizontalPodAutoscaler default/wbe scales Deployment wbe, which is not in these manifests"
    )
    assert says in result.err
    assert result.status == 0
    assert command("gate", file, *TWO_ZONES, *_HALF, "--strict").status == 3


def test_a_service_whose_ports_lead_to_other_pods_is_named_once(command: Command) -> None:
    other = template("web")
    other["spec"]["containers"][0]["ports"][0]["name"] = "admin"
    ports = [
        {"name": "http", "port": 80, "targetPort": "http"},
        {"name": "admin", "port": 81, "targetPort": "admin"},
    ]
    apart = {**workload("admin", 3, other), "spec": {**workload("web", 3, other)["spec"]}}
    rollout = _object("Rollout", "argoproj.io", {"replicas": 20, "template": _PODS})
    served = web(2), apart, service("web", ports=ports)
    both = command("gate", manifest(command, *served), *TWO_ZONES).out
    assert "http" in both
    assert "admin" in both
    out = command("gate", manifest(command, *served, rollout), *TWO_ZONES).out
    assert out.count("Not judged: default/web: ") == 1
