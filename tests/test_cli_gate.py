"""``gate`` as a user sees it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.commands import Command
from tests.support.gate_commands import TWO_ZONES, json_of, manifest, spread, web
from tests.support.gate_manifests import FOLDER, NODES, THRESHOLDS
from tests.support.gated import HOST, ZONE, service, template, workload


def _on_two_zones(command: Command, **more: Any) -> Any:
    given = web(topologySpreadConstraints=[spread(**more)])
    words = ("--max-loss", "50%", "--only", "node")
    return command("gate", manifest(command, given, service("web")), *TWO_ZONES, *words)


def test_a_constraint_whose_selector_is_empty_counts_no_pods(command: Command) -> None:
    """It keeps no pod from a node, though {} selects all of them."""
    assert _on_two_zones(command).status == 0
    result = _on_two_zones(command, labelSelector={})
    assert result.status == 1
    assert "(maxSkew 1, DoNotSchedule, its labelSelector {} counts no pods)" in result.out


def test_a_service_without_pods_is_told_so_once(command: Command) -> None:
    result = command("gate", manifest(command, web(0), service("web")), *TWO_ZONES, *THRESHOLDS)
    assert result.status == 1
    assert result.out.count("may have no running pod") == 1
    result = command("gate", manifest(command, web(0), service("web")), *TWO_ZONES)
    assert result.out.startswith("No Service has a running pod.")


def test_a_service_of_another_api_is_none(command: Command) -> None:
    knative = {**service("web"), "apiVersion": "serving.knative.dev/v1"}
    result = command("gate", manifest(command, knative, web(), service("web")), *TWO_ZONES)
    assert result.status == 0, result.err
    assert "Not considered: Service.serving.knative.dev (1)." in result.out


def test_what_is_not_judged_is_named_and_no_threshold_passes_on_it(command: Command) -> None:
    scheduled = workload("batch", 1, template("batch", schedulerName="volcano"))
    auto = service("web")
    auto["metadata"] = {
        "name": "auto",
        "annotations": {"service.kubernetes.io/topology-mode": "Auto"},
    }
    file = manifest(
        command, web(), service("web"), service("elsewhere"), auto, scheduled, service("batch"),
        service("headless", clusterIP="None"), {"kind": "CronJob", "metadata": {"name": "c"}},
    )  # fmt: skip
    found = json_of(command, file, "--nodes", "3x", "--max-loss", "100%")
    told = {each["service"]: (each["has_rules"], each["why"]) for each in found["not_judged"]}
    assert told == {
        "default/elsewhere": (True, "its selector selects no pods of these manifests"),
        "default/auto": (True, "topology-mode Auto: the controller allots hints by CPUs"),
        "default/batch": (True, "deployment default/batch: the scheduler volcano places its pods"),
        "default/headless": (False, "headless: kube-proxy has no rules for it"),
    }
    assert found["ignored"] == [{"kind": "CronJob", "number": 1}]
    assert not found["passes"]
    asked = ("gate", file, "--nodes", "3x", "--seed", "1")
    assert command(*asked, "--max-loss", "100%").status == 1
    assert command(*asked, "--max-loss", "100%", "--service", "web,headless").status == 0
    assert command(*asked, "--strict").status == 3
    assert "Not judged: default/elsewhere" in command(*asked).out


def test_ports_that_lead_to_other_pods_are_judged_apart(command: Command) -> None:
    sidecar = template("web")
    sidecar["metadata"]["labels"]["with"] = "metrics"
    sidecar["spec"]["containers"][0]["ports"].append({"name": "metrics", "containerPort": 9})
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"with": "metrics"}}}
    sidecar["spec"]["affinity"] = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    }
    ports = [
        {"name": "http", "port": 80, "targetPort": "http"},
        {"name": "metrics", "port": 9, "targetPort": "metrics"},
    ]
    labels = {"app": "web", "plain": "yes"}
    other = workload("plain", 1, {**template("plain"), "metadata": {"labels": labels}})
    other["spec"]["selector"] = {"matchLabels": {"plain": "yes"}}
    file = manifest(command, workload("web", 2, sidecar), other, service("web", ports=ports))
    found = json_of(command, file, "--nodes", "3x")
    losses = {tuple(s["ports"]): s["worst"][0]["loss"]["upper"]["value"] for s in found["services"]}
    assert losses == {
        ("http",): pytest.approx(2 / 3, abs=1e-8),
        ("metrics",): pytest.approx(1 / 2, abs=1e-8),
    }


def test_where_there_is_no_service_no_threshold_passes(command: Command) -> None:
    command.file("nothing.yaml", "---\nnull\n---\n")
    done = command("gate", "nothing.yaml", "--nodes", "3x", "--max-loss", "1%")
    assert done.status == 1
    assert done.out.startswith("The manifests have no Service, so the gate fails.\n")
    assert command("gate", "nothing.yaml", "--nodes", "3x").status == 0


@pytest.mark.deep
def test_what_is_not_proven_is_a_range_and_passes_no_threshold(command: Command) -> None:
    wide = workload("web", 40, template("web", cpu=1))
    near = service("web", trafficDistribution="PreferClose")
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}
    wide["spec"]["template"]["spec"]["topologySpreadConstraints"] = [
        {**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    ]
    file = manifest(command, wide, near)
    words = ("--nodes", "6xzone=a+cpu=9,6xzone=b+cpu=9", "--max-loss", "99%", "--only", "zone")
    found = json_of(command, file, *words)
    (worst,) = found["services"][0]["worst"]
    assert (worst["proven"], worst["at_most"]) == (False, 1.0)
    (violation,) = found["services"][0]["violations"]
    assert not violation["proven"]
    assert "the worst placement is not known" in violation["says"]


def test_sets_of_nodes_are_judged_where_they_are_asked_for(command: Command) -> None:
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": HOST,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
    file = manifest(command, web(4, topologySpreadConstraints=spread), service("web"))
    found = json_of(command, file, "--nodes", "4x", "--depth", "2", "--max-loss", "50%")
    losses = {w["failure"]: w["loss"]["upper"]["value"] for w in found["services"][0]["worst"]}
    assert losses == {
        "node": pytest.approx(1 / 4, abs=1e-8),
        "set": pytest.approx(1 / 2, abs=1e-8),
    }
    assert found["passes"]


def test_nodes_that_drop_flows_whatever_fails_are_told(command: Command) -> None:
    file = manifest(command, web(), service("web", internalTrafficPolicy="Local"))
    (one,) = json_of(command, file, "--nodes", "4x")["services"]
    assert one["dropping_nodes"] == 3
    shown = command("gate", file, "--nodes", "4x", "--seed", "1").out
    assert "default/web: up to 3 of 4 nodes have no local endpoint" in shown


def test_a_fix_holds_where_it_is_made(command: Command) -> None:
    file = manifest(command, web(), service("web"))
    asked = (*TWO_ZONES[:2], *THRESHOLDS)
    (one,) = json_of(command, file, *asked)["services"]
    assert one["fix"]["enough"]
    assert "topology.kubernetes.io/zone" in one["fix"]["says"]
    (patch,) = one["fix"]["patches"]
    assert (patch["kind"], patch["namespace"], patch["name"]) == ("Deployment", "default", "web")
    constraints = patch["merge"]["spec"]["template"]["spec"]["topologySpreadConstraints"]
    fixed = manifest(command, web(topologySpreadConstraints=constraints), service("web"))
    found = json_of(command, fixed, *asked)
    assert found["passes"]
    (then,) = found["services"]
    told = {each["failure"]: each["loss"] for each in one["fix"]["worst"]}
    assert {each["failure"]: each["loss"] for each in then["worst"]} == told


def test_whatif_says_the_same_of_the_objects_of_the_worst_placement(command: Command) -> None:
    file = str(FOLDER / "large-requests.yaml")
    given = ("gate", file, "--nodes", NODES, "--seed", "1")
    (one,) = json_of(command, file, "--nodes", NODES)["services"]
    worst = {each["failure"]: each for each in one["worst"]}
    for kind in ("node", "zone"):
        objects = command(*given, "--only", kind, "--objects-of", "worst").out
        name = command.file("o.json", objects)
        told = command(
            "whatif", "--from-objects", name, "--only", kind, "--seed", "1", "-o", "json"
        )
        (first, *_) = json.loads(told.out)["failures"]
        assert first["worst_loss"]["upper"] == worst[kind]["loss"]["upper"]
    expected = json.loads(command(*given, "--objects-of", "expected").out)
    assert {i["kind"] for i in expected["items"]} == {"Node", "Service", "EndpointSlice"}


def test_where_room_is_scarce_pods_of_others_may_come_first(command: Command) -> None:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    given = web(2, affinity=anti, cpu=1)
    file = manifest(command, given, service("web"), workload("big", 2, template("big", cpu=2)))
    (alone,) = json_of(command, file, "--nodes", "4xcpu=2")["services"]
    assert alone["worst"][0]["loss"]["upper"]["value"] == pytest.approx(1 / 2)
    # With both of the others there first one node is left for two pods that want one each.
    result = command("gate", file, "--nodes", "3xcpu=2", "--max-loss", "50%", "--seed", "1")
    assert result.status == 1
    assert "default/web loses 100.0% if node node-1 fails" in result.out
    assert "Some of its pods may stay Pending" in result.out


def test_half_of_four_pods_is_no_more_than_half_for_gate_and_for_whatif(command: Command) -> None:
    """Draws are rounded: two of four endpoints get a little more or less than half of all flows."""
    given = web(4, topologySpreadConstraints=[spread(topologyKey=ZONE)])
    file = manifest(command, given, service("web"))
    words = ("--only", "zone", "--max-loss")
    for most, status in (("50%", 0), ("49.9999%", 1)):
        assert command("gate", file, *TWO_ZONES, *words, most).status == status
        objects = command("gate", file, *TWO_ZONES, "--only", "zone", "--objects-of", "worst").out
        name = command.file("o.json", objects)
        result = command("whatif", "--from-objects", name, "--seed", "1", *words, most)
        assert result.status == status
