"""``gate`` on the nodes of a cluster, with what runs there."""

from __future__ import annotations

import json
from typing import Any

from tests.support.commands import Command
from tests.support.gate_commands import json_of, manifest, web
from tests.support.gated import HOST, ZONE, node, service, template, workload


def _running(name: str, on: str, app: str, **spec: Any) -> Any:
    return {
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": app}},
        "spec": {"nodeName": on, **template(app, **spec)["spec"]},
        "status": {"phase": "Running"},
    }


def test_pods_that_run_take_room_and_keep_others_away(command: Command) -> None:
    nodes = [node(f"n{n}", zone, cpu=2) for n, zone in enumerate("aabb")]
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    running = [
        _running("full", "n0", "other", cpu=2),
        _running("apart", "n1", "other", affinity=anti),
        _running("web-old", "n3", "web"),
    ]
    cluster = command.file("c.json", json.dumps({"kind": "List", "items": [*nodes, *running]}))
    found = json_of(command, manifest(command, web(cpu=1), service("web")), "--nodes", cluster)
    (worst, _) = found["services"][0]["worst"]
    # The old pod goes; both new ones fit on one of the two nodes that are left.
    assert worst["pods"] == [{"node": "n2", "number": 2}]
    assert "1 running pod is replaced by those of the manifests" in found["assumed"]


def test_pods_on_nodes_without_the_label_keep_nobody_beside_them(command: Command) -> None:
    """The first of pods that want each other goes anywhere, as long as no zone has one."""
    nodes = [node("n0", None), node("n1", "a"), node("n2", "b")]
    cluster = [*nodes, _running("old", "n0", "web")]
    items = command.file("c.json", json.dumps({"kind": "List", "items": cluster}))
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}
    beside = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    new = web(2, affinity=beside)
    new["spec"]["template"]["metadata"]["labels"]["v"] = "2"
    new["spec"]["selector"] = {"matchLabels": {"v": "2"}}
    file = manifest(command, new, service("web", selector={"v": "2"}))
    found = json_of(command, file, "--nodes", items)
    assert found["pending"] == []
    assert found["services"][0]["worst"][0]["pods"] == [{"node": "n1", "number": 2}]


def test_a_pod_that_stays_is_an_endpoint_too(command: Command) -> None:
    cluster = [node("n0", None), node("n1", None), _running("canary", "n1", "web")]
    items = command.file("c.json", json.dumps({"kind": "List", "items": cluster}))
    other = workload(
        "web", 1, {**template("web"), "metadata": {"labels": {"app": "web", "v": "2"}}}
    )
    other["spec"]["selector"] = {"matchLabels": {"v": "2"}}
    found = json_of(command, manifest(command, other, service("web")), "--nodes", items)
    (one,) = found["services"]
    assert one["survives"]["nodes"] == 0
    assert one["expected"]["survives"] == 1


def test_a_pod_that_says_it_is_not_ready_takes_room_and_is_no_endpoint(command: Command) -> None:
    down = _running("canary", "n1", "web")
    down["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    cluster = [node("n0", None), node("n1", None), down]
    items = command.file("c.json", json.dumps({"kind": "List", "items": cluster}))
    other = workload(
        "web", 1, {**template("web"), "metadata": {"labels": {"app": "web", "v": "2"}}}
    )
    other["spec"]["selector"] = {"matchLabels": {"v": "2"}}
    (one,) = json_of(command, manifest(command, other, service("web")), "--nodes", items)[
        "services"
    ]
    assert one["expected"]["survives"] == 0
    published = service("web", publishNotReadyAddresses=True)
    (one,) = json_of(command, manifest(command, other, published), "--nodes", items)["services"]
    assert one["expected"]["survives"] == 1
    alone = manifest(command, service("web"))
    found = json_of(command, alone, "--nodes", items)
    assert found["not_judged"][0]["why"] == "all pods that its selector selects are not ready"
