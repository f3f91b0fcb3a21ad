"""Manifests and nodes in which anything may stand: a verdict, or one clear message."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.commands import Command
from tests.support.effort import examples
from tests.support.gated import HOST, node, service, template, workload

_TERM = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "a"}}}
_NEEDED = "requiredDuringSchedulingIgnoredDuringExecution"
_RATHER = "preferredDuringSchedulingIgnoredDuringExecution"
_EXPRESSION = {"key": HOST, "operator": "In", "values": ["n0", "n1"]}
_SPEC: Any = {
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "k", "operator": "Exists"}],
    "topologySpreadConstraints": [
        {**_TERM, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2},
        {**_TERM, "maxSkew": 2, "whenUnsatisfiable": "ScheduleAnyway", "matchLabelKeys": ["app"]},
    ],
    "affinity": {
        "podAntiAffinity": {_NEEDED: [{**_TERM, "namespaces": ["x"], "namespaceSelector": {}}]},
        "podAffinity": {_RATHER: [{"weight": 5, "podAffinityTerm": _TERM}]},
        "nodeAffinity": {_NEEDED: {"nodeSelectorTerms": [{"matchExpressions": [_EXPRESSION]}]}},
    },
    "initContainers": [{"restartPolicy": "Always", "resources": {"requests": {"cpu": "1m"}}}],
    "volumes": [{"persistentVolumeClaim": {"claimName": "c"}}],
    "overhead": {"cpu": "1m"},
}
_SCALER: Any = {
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "h"},
    "spec": {
        "minReplicas": 2,
        "maxReplicas": 3,
        "scaleTargetRef": {"kind": "Deployment", "name": "a"},
    },
}
_RUNNING: Any = {
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"app": "z"}},
    "spec": {"nodeName": "n0", **template("z", port=80)["spec"]},
    "status": {"phase": "Running"},
}
_ODD = st.sampled_from([None, True, -1, 0, 7, 1.5, "", "x", "\x1b[31m", [], {}, [None], {"a": 1}])


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    found = [path] if path else []
    if isinstance(value, dict | list):
        for key, each in inner:
            found += (
                _places(each, (*path, key)) if isinstance(each, dict | list) else [(*path, key)]
            )
    return found


_MADE = {
    "m": [
        workload("a", 3, template("a", **_SPEC, cpu=1)),
        service("a", trafficDistribution="PreferClose", type="NodePort"),
        workload("d", None, template("d", port=80)),
        service("d", internalTrafficPolicy="Local", externalIPs=["192.0.2.1"]),
        _SCALER,
        {"kind": "Namespace", "metadata": {"name": "x", "labels": {"a": "b"}}},
    ],
    "n": [*(node(f"n{n}", "xy"[n % 2], cpu=2) for n in range(3)), _RUNNING],
}
for _each in _MADE["n"][:3]:
    _each["metadata"]["labels"]["kubernetes.io/os"] = "linux"


@given(st.data())
@settings(examples(10, 4_000), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_stands_in_manifests_there_is_an_answer(command: Command, data: Any) -> None:
    made = copy.deepcopy(_MADE)
    for _ in range(data.draw(st.integers(0, 2))):
        *path, last = data.draw(st.sampled_from(_places(made)))
        into: Any = made
        for step in path:
            into = into[step]
        into[last] = data.draw(_ODD)
    for name, items in made.items():
        command.file(f"{name}.json", json.dumps({"kind": "List", "items": items}))
    files = (str(command.folder / "m.json"), "--nodes", str(command.folder / "n.json"))
    form = data.draw(st.sampled_from(["text", "json", "sarif", "junit", "tsv", "markdown"]))
    result = command("gate", *files, "--max-loss", "50%", "--seed", "1", "-o", form)
    assert result.status in {0, 1, 2}
    assert "\x1b" not in result.out + result.err
    assert bool(result.out) is (result.status != 2)
    assert result.err.count("\n") <= 3 or result.status != 2
