"""Manifests that the API would refuse are refused here: no constraint is passed over in silence."""

from __future__ import annotations

import copy
import json
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analyzer.parsers.manifests import manifests
from tests.support.commands import Command
from tests.support.effort import examples
from tests.support.gate_commands import TWO_ZONES, manifest, web
from tests.support.gate_manifests import FOLDER, NODES, THRESHOLDS
from tests.support.gated import node, service, template, workload

_READ = {
    "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Pod", "Service", "Namespace",
    "HorizontalPodAutoscaler",
}  # fmt: skip
#: What is below says nothing of where pods are.
_OPAQUE = {
    "env",
    "volumes",
    "volumeClaimTemplates",
    "metrics",
    "behavior",
    "status",
    "securityContext",
    "strategy",
}
#: A number or a text.
_EITHER = {"targetPort", "cpu", "memory", "nvidia.com/gpu"}
_VALUES: list[Any] = [True, 7, "x y", ["x"], {"x": "y"}]


@cache
def _items(name: str) -> list[Any]:
    data = (FOLDER / f"{name}.yaml").read_bytes()
    return [each.item for each in manifests([(name, data)])]


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if path and path[-1] in _OPAQUE:
        return found
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            found += _paths(each, (*path, key))
    return found


def _shown(path: tuple[Any, ...]) -> str:
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).removeprefix(".")


@st.composite
def _places(draw: st.DrawFn) -> tuple[list[Any], int, tuple[Any, ...]]:
    """Give manifests, the number of one of them, and a path in it."""
    items = copy.deepcopy(_items(draw(st.sampled_from(sorted(p.stem for p in FOLDER.iterdir())))))
    n = draw(st.sampled_from([n for n, each in enumerate(items) if each["kind"] in _READ]))
    path = draw(st.sampled_from([p for p in _paths(items[n]) if p != ("kind",)]))
    return items, n, path


def _parent(item: Any, path: tuple[Any, ...]) -> Any:
    for step in path[:-1]:
        item = item[step]
    return item


def _is_label(item: Any, path: tuple[Any, ...]) -> bool:
    """Tell whether it is in a map whose keys anybody chooses, with texts."""
    own = item["kind"] == "Service" and path[:-1] == ("spec", "selector")
    return own or path[-2:-1] in {(k,) for k in ("matchLabels", "labels", "nodeSelector")}


def _gate(command: Command, items: list[Any]) -> Any:
    command.file("m.json", json.dumps({"kind": "List", "items": items}))
    return command("gate", "m.json", "--nodes", NODES, *THRESHOLDS, "--seed", "1")


_SHARED = {"suppress_health_check": [HealthCheck.function_scoped_fixture]}


@given(_places(), st.data())
@settings(examples(60, 4_000), **_SHARED)  # type: ignore[arg-type]  # mypy sees no types in it
def test_a_value_of_another_kind_is_refused_with_its_path(
    command: Command, place: tuple[list[Any], int, tuple[Any, ...]], data: st.DataObject
) -> None:
    items, n, path = place
    into = _parent(items[n], path)
    old = into[path[-1]]
    others = [v for v in _VALUES if type(v) is not type(old)]
    if path[-1] in _EITHER:
        others = [v for v in others if type(v) not in (int, str)]
    into[path[-1]] = data.draw(st.sampled_from(others))
    result = _gate(command, items)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("m.json:1:1: ")
    assert _shown(path) in result.err
    assert items[n]["kind"] in result.err


@given(_places())
@settings(examples(16, 4_000), **_SHARED)  # type: ignore[arg-type]  # as above
def test_null_is_as_if_nothing_were_there(
    command: Command, place: tuple[list[Any], int, tuple[Any, ...]]
) -> None:
    items, n, path = place
    into = _parent(items[n], path)
    if isinstance(into, list):
        return
    into[path[-1]] = None
    null = _gate(command, items)
    if _is_label(items[n], path):
        assert null.status == 2
        assert "expected text, not null" in null.err
        return
    del into[path[-1]]
    gone = _gate(command, items)
    assert (null.status, null.out) == (gone.status, gone.out)
    # The line that is quoted has the whole file.
    assert null.err.split("\n")[0] == gone.err.split("\n")[0]
    assert "Traceback" not in null.err


@given(_places())
@settings(examples(16, 4_000), **_SHARED)  # type: ignore[arg-type]  # as above
def test_a_misspelt_field_is_named_and_no_threshold_passes_on_it(
    command: Command, place: tuple[list[Any], int, tuple[Any, ...]]
) -> None:
    items, n, path = place
    into = _parent(items[n], path)
    free = {
        "matchLabels",
        "labels",
        "annotations",
        "nodeSelector",
        "requests",
        "limits",
        "overhead",
    }
    if isinstance(into, list) or (len(path) > 1 and path[-2] in free):
        return
    if path[-2:] == ("spec", "selector") and items[n]["kind"] == "Service":
        return
    if len(path) > 1 and path[-2] == "selector" and items[n]["kind"] == "Service":
        return
    into[f"{path[-1]}X"] = into.pop(path[-1])
    result = _gate(command, items)
    # Whatever was needed is missed; all else is named.
    assert result.status in {1, 2}
    said = result.err.split("\n")[0] if result.status == 2 else result.err + result.out
    assert f"{path[-1]}X" in said
    assert items[n]["kind"] in said


_TERM = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a"}}}
_NODE_TERMS = (
    "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
)
_NEEDED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"affinity": "foo"}, "affinity: expected a map, not 'foo'"),
        ({"affinity": {"podAntiAffinity": []}}, "affinity.podAntiAffinity: expected a map"),
        (
            {"affinity": {"podAntiAffinity": {_NEEDED: _TERM}}},
            f"affinity.podAntiAffinity.{_NEEDED}: expected a list, not a map",
        ),
        (
            {"affinity": {"podAntiAffinity": {_NEEDED: [{"topologyKey": ""}]}}},
            f"affinity.podAntiAffinity.{_NEEDED}[0].topologyKey: empty",
        ),
        (
            {"affinity": {"podAntiAffinity": {_NEEDED: [{}]}}},
            f"affinity.podAntiAffinity.{_NEEDED}[0].topologyKey: missing",
        ),
        ({"nodeSelector": {"a": 1}}, "nodeSelector.a: expected text, not 1; put quotes around it"),
        ({"hostNetwork": "yes"}, "hostNetwork: expected true or false, not 'yes'"),
        (
            {"tolerations": [{"operator": "Any"}]},
            "tolerations[0].operator: expected Exists or Equal, not 'Any'",
        ),
        (
            {"affinity": {"nodeAffinity": {_NEEDED: {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "n", "operator": "Gt", "values": ["x"]}]}]}}}},
            f"{_NODE_TERMS}[0].matchExpressions[0].values: Gt takes one integer, as text",
        ),
        (
            {"affinity": {"nodeAffinity": {_NEEDED: {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "n", "operator": "In", "values": []}]}]}}}},
            f"{_NODE_TERMS}[0].matchExpressions[0].values: In takes at least one value",
        ),
        ({"containers": {}}, "containers: expected a list, not a map"),
        ({"overhead": {"cpu": "-1"}}, "overhead.cpu: '-1' is negative"),
    ],
)  # fmt: skip
def test_what_a_pod_says_amiss_is_told_in_one_line(
    command: Command, spec: dict[str, Any], says: str
) -> None:
    result = command("gate", manifest(command, web(**spec), service("web")), *TWO_ZONES)
    assert (result.status, result.out) == (2, "")
    assert f"m.yaml:1:1: Deployment default/web: spec.template.spec.{says}" in result.err
    assert result.err.count("\n") == 3


@pytest.mark.parametrize(
    ("item", "says"),
    [
        ({**web(), "spec": []}, "Deployment default/web: spec: expected a map, not a list"),
        (
            workload("web", -1, template("web")),
            "replicas: expected an integer from 0 to 10,000",
        ),
        (workload("web", True, template("web")), "spec.replicas: expected an integer from 0 to"),
        ({**web(), "metadata": {"name": 5}}, "metadata.name: expected text, not 5; put quotes"),
        ({**web(), "spec": None}, "spec: missing"),
        (service("web", ports={"port": 80}), "Service default/web: spec.ports: expected a list"),
        (service("web", internalTrafficPolicy="local"), "expected Cluster or Local, not 'local'"),
        (service("web", clusterIP="10.0.0"), "spec.clusterIP: expected an IP address, not '10.0"),
    ],
)
def test_what_an_object_says_amiss_is_told_in_one_line(
    command: Command, item: Any, says: str
) -> None:
    result = command("gate", manifest(command, item), *TWO_ZONES)
    assert (result.status, result.out) == (2, "")
    assert says in result.err
    assert result.err.count("\n") == 3


@pytest.mark.parametrize(
    ("item", "says"),
    [
        (
            {**node("n", "x"), "spec": {"taints": {}}},
            "n: spec.taints: expected a list",
        ),
        (
            {**node("n", "x"), "status": {"allocatable": {"cpu": "x"}}},
            "allocatable.cpu: 'x' is",
        ),
        (
            {"kind": "Pod", "metadata": {"name": "p", "namespace": "s"}, "spec": {"nodeName": "n"}},
            "Pod s/p: spec.containers: missing",
        ),
    ],
)
def test_what_the_cluster_says_amiss_is_told_with_its_file(
    command: Command, item: Any, says: str
) -> None:
    file = command.file("n.json", json.dumps({"kind": "List", "items": [node("o", "x"), item]}))
    result = command("gate", manifest(command, web(), service("web")), "--nodes", file)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("kubeodds: n.json: ")
    assert says in result.err
