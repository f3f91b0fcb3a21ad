"""What ``gate`` takes and refuses: manifests, options, exit statuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.commands import Command
from tests.support.gate_commands import TWO_ZONES, documents, json_of, manifest, spread, web
from tests.support.gated import service, template, workload


def test_manifests_come_from_stdin_and_from_folders(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = documents(web(), service("web"))
    (command.folder / "manifests").mkdir()
    (command.folder / "manifests" / "web.yaml").write_text(text)
    from_folder = command("gate", "manifests", *TWO_ZONES)
    (command.folder / "in").write_text(text)
    with (command.folder / "in").open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        from_stdin = command("gate", "-", *TWO_ZONES)
    assert from_folder.status == from_stdin.status == 0
    assert from_stdin.out == from_folder.out
    assert "Worst: default/web loses 100.0% if node a-1 fails." in from_stdin.out


def test_without_thresholds_the_worst_is_told_and_the_status_is_0(command: Command) -> None:
    file = manifest(command, web(), service("web"))
    assert command("gate", file, *TWO_ZONES).status == 0
    assert command("gate", file, *TWO_ZONES, "--max-loss", "100%").status == 0
    assert command("gate", file, *TWO_ZONES, "--max-loss", "99%").status == 1
    assert command("gate", file, *TWO_ZONES, "--min-survives", "1").status == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "the following arguments are required: MANIFEST, --nodes"),
        (("none.yaml", "--nodes", "3x"), "none.yaml: No such file"),
        (("m.yaml", "--nodes", "none.json"), "none.json: No such file"),
        (("m.yaml", "--nodes", "3"), "--nodes 3: neither a file nor a description of nodes, for"),
        (("m.yaml", "--nodes", "3x,m.yaml"), "a file or a description of nodes"),
        (("m.yaml", "--nodes", "99999x"), "--nodes 99999x: more than 5,000 nodes are described"),
        (("m.yaml", "--nodes", "3000x,3000x"), "--nodes 3000x: more than 5,000 nodes"),
        (("m.yaml", "--nodes", "9" * 9_999 + "x"), "more than 5,000 nodes are described"),
        (
            ("m.yaml", "--nodes", "3xzone=a,,3x"),
            "'3xzone=a,,3x' has an empty part, between two commas",
        ),
        (("m.yaml", "--nodes", "3x,"), "'3x,' has an empty part, between two commas or at an end"),
        (("m.yaml", "--nodes", "empty.json"), "describe the nodes: --nodes 3xzone=a,3xzone=b"),
        (("m.yaml", "--nodes", "3x", "--service", "nosuch"), "no Service nosuch in these manif"),
        (("m.yaml", "--nodes", "3x", "-n", "nosuch"), "in namespace nosuch of these manifests"),
        (("m.yaml", "--nodes", "s.json"), "it contains no Node"),
        (("m.yaml", "--nodes", "3xzone=a", "--only", "zone"), "not in two or more zones"),
        (("m.yaml", "--nodes", "3x", "--only", "control-plane"), "no node has its role label"),
        (("m.yaml", "--nodes", "3x", "--control-plane", "m"), "no such node; there are node-1"),
        (("m.yaml", "--nodes", "3x", "--depth", "3"), "one must be left"),
        (("m.yaml", "--nodes", "3x", "--only", "set"), "with --depth"),
        (("m.yaml", "--nodes", "3x", "--service", "wbe"), "did you mean default/web?"),
        (("m.yaml", "--nodes", "3x", "--kube-proxy", "1.2"), "--kube-proxy"),
    ],
)
def test_bad_input_is_one_clear_message(
    command: Command, words: tuple[str, ...], says: str
) -> None:
    manifest(command, web(), service("web"))
    command.file("s.json", '{"kind": "Service"}')
    command.file("empty.json", "")
    result = command("gate", *words)
    assert (result.status, result.out) == (2, "")
    assert says in result.err
    assert "Traceback" not in result.err
    assert "--node-of" not in result.err
    assert "dump" not in result.err


@pytest.mark.parametrize(
    ("item", "says"),
    [
        (
            service("one", selector={"app": "web"}, ports=[{"port": "http"}]),
            "spec.ports[0].port: expected an integer from 1 to 65,535, not 'http'",
        ),
        (service("one", selector={"app": True}), "put quotes around it"),
        (service("Web web"), "not one that the API allows"),
        (web(), "defined twice; first at m.yaml:1"),
        (workload("a", 1, template("a", cpu="much")), "'much' is not a quantity"),
        (
            workload("a", 1, template("a", topologySpreadConstraints=[spread(maxSkew=0)])),
            "maxSkew: expected an integer from 1, not 0",
        ),
        (
            workload("a", 1, template("a", topologySpreadConstraints=[spread(minDomains="3")])),
            "minDomains: expected an integer from 1, not '3'",
        ),
        (
            workload(
                "a",
                1,
                template("a", topologySpreadConstraints=[spread(whenUnsatisfiable="Never")]),
            ),
            "whenUnsatisfiable: expected DoNotSchedule or ScheduleAnyway, not 'Never'",
        ),
        (
            workload("a", 1, template("a", nodeSelector={"disk": True})),
            "nodeSelector.disk: expected text, not true; put quotes around it",
        ),
    ],
)
def test_a_malformed_manifest_is_refused_with_its_place(
    command: Command, item: Any, says: str
) -> None:
    result = command("gate", manifest(command, web(), service("web"), item), *TWO_ZONES)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("m.yaml:")
    assert says in result.err


def _generated(item: Any) -> Any:
    return {**item, "metadata": {"generateName": f"{item['metadata']['name']}-"}}


def test_names_that_the_api_is_to_make_end_with_a_star(command: Command) -> None:
    """``kubectl create`` takes such a manifest any number of times; each makes another object."""
    one, other = _generated(web()), _generated(service("web"))
    file = manifest(command, one, one, other, other)
    result = command("gate", file, *TWO_ZONES, "--max-loss", "50%")
    assert result.status == 1
    assert result.out.startswith("2 of 2 Services fail: default/web-*, default/web-*.\n")
    assert "  deployment default/web-*: no required podAntiAffinity" in result.out
    # One does not count the other's pods: each has a hash of its own.
    apart = spread(matchLabelKeys=["pod-template-hash"])
    one = _generated(web(topologySpreadConstraints=[apart]))
    found = json_of(command, manifest(command, one, one, other), *TWO_ZONES[:2])
    (loss, _) = found["services"][0]["worst"]
    assert loss["loss"]["upper"]["value"] == pytest.approx(1 / 2)


def test_objects_of_services_with_made_names_are_read_by_whatif(command: Command) -> None:
    other = _generated(service("web"))
    file = manifest(command, web(), other, other)
    text = command("gate", file, *TWO_ZONES, "--objects-of", "worst").out
    names = {i["metadata"]["name"] for i in json.loads(text)["items"] if i["kind"] == "Service"}
    assert names == {"web-00000", "web-00001"}
    told = command("whatif", "--from-objects", command.file("o.json", text), "--only", "node")
    assert told.status == 0, told.err


def test_a_manifest_with_anchors_and_aliases_is_judged_as_it_is_written_out(
    command: Command,
) -> None:
    labels = "&labels {app: web}"
    text = f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, labels: {labels}}}
spec:
  replicas: 2
  selector: &selector
    matchLabels: *labels
  template:
    metadata: {{labels: *labels}}
    spec:
      containers: [{{name: c, image: i, ports: [{{name: http, containerPort: 8080}}]}}]
      topologySpreadConstraints:
      - &apart
        maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: DoNotSchedule
        labelSelector: *selector
      - <<: *apart
        topologyKey: topology.kubernetes.io/zone
---
kind: Service
metadata: {{name: web}}
spec: {{selector: {{app: web}}, ports: [{{port: 80, targetPort: http}}]}}
"""
    file = command.file("y.yaml", text)
    result = command("gate", file, *TWO_ZONES, "--max-loss", "50%", "--min-survives", "1")
    assert result.status == 0, result.out + result.err
    assert "1 Service passes" in result.out
