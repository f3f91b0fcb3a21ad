"""``gate`` as a user sees it."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from analyzer.reports.gate_sarif import render as render_sarif
from analyzer.reports.gate_text import render as render_text
from analyzer.reports.terminal import render_terminal
from tests.support.commands import Command
from tests.support.gate_answers import gate_answer
from tests.support.gate_manifests import FOLDER, NODES, THRESHOLDS
from tests.support.gated import HOST, ZONE, node, service, template, workload

_TWO_ZONES = ("--nodes", "2xzone=a,2xzone=b", "--seed", "1")


def _documents(*items: Any) -> str:
    # JSON is YAML, and has no aliases.
    return "---\n".join(f"{json.dumps(each, indent=1)}\n" for each in items)


def _manifest(command: Command, *items: Any) -> str:
    return command.file("m.yaml", _documents(*items))


def _json(command: Command, *words: str) -> Any:
    result = command("gate", *words, "--seed", "1", "-o", "json")
    assert result.status in {0, 1}, result.err
    return json.loads(result.out)


def _web(replicas: int = 2, **spec: Any) -> Any:
    return workload("web", replicas, template("web", **spec))


def _spread(**more: Any) -> Any:
    selector = {"matchLabels": {"app": "web"}}
    wanted = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule"}
    return {**wanted, "labelSelector": selector, **more}


@pytest.fixture
def there(command: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run commands in the folder of the test."""
    monkeypatch.chdir(command.folder)
    return command


# --- input ---------------------------------------------------------------------


def test_manifests_come_from_stdin_and_from_folders(
    there: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = _documents(_web(), service("web"))
    (there.folder / "manifests").mkdir()
    (there.folder / "manifests" / "web.yaml").write_text(text)
    from_folder = there("gate", "manifests", *_TWO_ZONES)
    (there.folder / "in").write_text(text)
    with (there.folder / "in").open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        from_stdin = there("gate", "-", *_TWO_ZONES)
    assert from_folder.status == from_stdin.status == 0
    assert from_stdin.out == from_folder.out
    assert "Worst: default/web loses 100.0% with node a-1." in from_stdin.out


def test_without_thresholds_the_worst_is_told_and_the_status_is_0(there: Command) -> None:
    file = _manifest(there, _web(), service("web"))
    assert there("gate", file, *_TWO_ZONES).status == 0
    assert there("gate", file, *_TWO_ZONES, "--max-loss", "100%").status == 0
    assert there("gate", file, *_TWO_ZONES, "--max-loss", "99%").status == 1
    assert there("gate", file, *_TWO_ZONES, "--min-survives", "1").status == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "the following arguments are required: MANIFEST, --nodes"),
        (("none.yaml", "--nodes", "3x"), "none.yaml: No such file"),
        (("m.yaml", "--nodes", "none.json"), "none.json: No such file"),
        (("m.yaml", "--nodes", "3x,m.yaml"), "a file beside a description"),
        (("m.yaml", "--nodes", "s.json"), "there is no Node in it"),
        (("m.yaml", "--nodes", "3xzone=a", "--only", "zone"), "not in two zones"),
        (("m.yaml", "--nodes", "3x", "--only", "control-plane"), "no node has its role label"),
        (("m.yaml", "--nodes", "3x", "--control-plane", "m"), "no such node; there are node-1"),
        (("m.yaml", "--nodes", "3x", "--depth", "3"), "some have to live"),
        (("m.yaml", "--nodes", "3x", "--only", "set"), "with --depth"),
        (("m.yaml", "--nodes", "3x", "--service", "wbe"), "there are default/web"),
        (("m.yaml", "--nodes", "3x", "--kube-proxy", "1.2"), "--kube-proxy"),
    ],
)
def test_bad_input_is_one_clear_message(there: Command, words: tuple[str, ...], says: str) -> None:
    _manifest(there, _web(), service("web"))
    there.file("s.json", '{"kind": "Service"}')
    result = there("gate", *words)
    assert (result.status, result.out) == (2, "")
    assert says in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("item", "says"),
    [
        (
            service("one", selector={"app": "web"}, ports=[{"port": "http"}]),
            "port 'http' is not a port",
        ),
        (service("one", selector={"app": True}), "put quotes around it"),
        (service("Web web"), "none that the API allows"),
        (_web(), "for the second time; first at m.yaml:1"),
        (workload("a", 1, template("a", cpu="much")), "'much' is no quantity"),
        (
            workload("a", 1, template("a", topologySpreadConstraints=[_spread(maxSkew=0)])),
            "maxSkew 0 is no number from 1",
        ),
        (
            workload("a", 1, template("a", topologySpreadConstraints=[_spread(minDomains="3")])),
            "minDomains '3' is no number from 1",
        ),
        (
            workload(
                "a",
                1,
                template("a", topologySpreadConstraints=[_spread(whenUnsatisfiable="Never")]),
            ),
            "whenUnsatisfiable 'Never' is neither DoNotSchedule nor ScheduleAnyway",
        ),
        (
            workload("a", 1, template("a", nodeSelector={"disk": True})),
            "nodeSelector: disk is no text",
        ),
    ],
)
def test_a_malformed_manifest_is_refused_with_its_place(
    there: Command, item: Any, says: str
) -> None:
    result = there("gate", _manifest(there, _web(), service("web"), item), *_TWO_ZONES)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("m.yaml:")
    assert says in result.err


def _on_two_zones(there: Command, **more: Any) -> Any:
    web = _web(topologySpreadConstraints=[_spread(**more)])
    words = ("--max-loss", "50%", "--only", "node")
    return there("gate", _manifest(there, web, service("web")), *_TWO_ZONES, *words)


def test_a_constraint_whose_selector_is_empty_counts_no_pods(there: Command) -> None:
    """It keeps no pod from a node, though {} selects all of them."""
    assert _on_two_zones(there).status == 0
    result = _on_two_zones(there, labelSelector={})
    assert result.status == 1
    assert "(maxSkew 1, DoNotSchedule, its labelSelector {} counts no pods)" in result.out


def test_a_service_without_pods_is_told_so_once(there: Command) -> None:
    result = there("gate", _manifest(there, _web(0), service("web")), *_TWO_ZONES, *THRESHOLDS)
    assert result.status == 1
    assert result.out.count("may be without any pod that runs") == 1
    result = there("gate", _manifest(there, _web(0), service("web")), *_TWO_ZONES)
    assert result.out.startswith("No pod of any Service runs.")


def test_a_service_of_another_api_is_none(there: Command) -> None:
    knative = {**service("web"), "apiVersion": "serving.knative.dev/v1"}
    result = there("gate", _manifest(there, knative, _web(), service("web")), *_TWO_ZONES)
    assert result.status == 0, result.err
    assert "Not looked at: Service.serving.knative.dev (1)." in result.out


# --- nodes of a cluster, with what runs there -----------------------------------


def _running(name: str, on: str, app: str, **spec: Any) -> Any:
    return {
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": app}},
        "spec": {"nodeName": on, **template(app, **spec)["spec"]},
        "status": {"phase": "Running"},
    }


def test_pods_that_run_take_room_and_keep_others_away(there: Command) -> None:
    nodes = [node(f"n{n}", zone, cpu=2) for n, zone in enumerate("aabb")]
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    running = [
        _running("full", "n0", "other", cpu=2),
        _running("apart", "n1", "other", affinity=anti),
        _running("web-old", "n3", "web"),
    ]
    cluster = there.file("c.json", json.dumps({"kind": "List", "items": [*nodes, *running]}))
    found = _json(there, _manifest(there, _web(cpu=1), service("web")), "--nodes", cluster)
    (worst, _) = found["services"][0]["worst"]
    # The old pod goes; both new ones fit on one of the two nodes that are left.
    assert worst["pods"] == [{"node": "n2", "number": 2}]
    assert "1 pod that runs is replaced by those of the manifests" in found["assumed"]


def test_pods_on_nodes_without_the_label_keep_nobody_beside_them(there: Command) -> None:
    """The first of pods that want each other goes anywhere, as long as no zone has one."""
    nodes = [node("n0", None), node("n1", "a"), node("n2", "b")]
    cluster = [*nodes, _running("old", "n0", "web")]
    items = there.file("c.json", json.dumps({"kind": "List", "items": cluster}))
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}
    beside = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    new = _web(2, affinity=beside)
    new["spec"]["template"]["metadata"]["labels"]["v"] = "2"
    new["spec"]["selector"] = {"matchLabels": {"v": "2"}}
    manifest = _manifest(there, new, service("web", selector={"v": "2"}))
    found = _json(there, manifest, "--nodes", items)
    assert found["pending"] == []
    assert found["services"][0]["worst"][0]["pods"] == [{"node": "n1", "number": 2}]


def test_a_pod_that_stays_is_an_endpoint_too(there: Command) -> None:
    cluster = [node("n0", None), node("n1", None), _running("canary", "n1", "web")]
    items = there.file("c.json", json.dumps({"kind": "List", "items": cluster}))
    other = workload(
        "web", 1, {**template("web"), "metadata": {"labels": {"app": "web", "v": "2"}}}
    )
    other["spec"]["selector"] = {"matchLabels": {"v": "2"}}
    found = _json(there, _manifest(there, other, service("web")), "--nodes", items)
    (one,) = found["services"]
    assert one["survives"]["nodes"] == 0
    assert one["expected"]["survives"] == 1


def test_a_pod_that_says_it_is_not_ready_takes_room_and_is_no_endpoint(there: Command) -> None:
    down = _running("canary", "n1", "web")
    down["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    cluster = [node("n0", None), node("n1", None), down]
    items = there.file("c.json", json.dumps({"kind": "List", "items": cluster}))
    other = workload(
        "web", 1, {**template("web"), "metadata": {"labels": {"app": "web", "v": "2"}}}
    )
    other["spec"]["selector"] = {"matchLabels": {"v": "2"}}
    (one,) = _json(there, _manifest(there, other, service("web")), "--nodes", items)["services"]
    assert one["expected"]["survives"] == 0
    published = service("web", publishNotReadyAddresses=True)
    (one,) = _json(there, _manifest(there, other, published), "--nodes", items)["services"]
    assert one["expected"]["survives"] == 1
    alone = _manifest(there, service("web"))
    found = _json(there, alone, "--nodes", items)
    assert found["not_judged"][0]["why"] == "all pods that its selector selects are not ready"


# --- what it says ---------------------------------------------------------------


def test_what_is_not_judged_is_named_and_no_threshold_passes_on_it(there: Command) -> None:
    scheduled = workload("batch", 1, template("batch", schedulerName="volcano"))
    auto = service("web")
    auto["metadata"] = {
        "name": "auto",
        "annotations": {"service.kubernetes.io/topology-mode": "Auto"},
    }
    file = _manifest(
        there, _web(), service("web"), service("elsewhere"), auto, scheduled, service("batch"),
        service("headless", clusterIP="None"), {"kind": "CronJob", "metadata": {"name": "c"}},
    )  # fmt: skip
    found = _json(there, file, "--nodes", "3x", "--max-loss", "100%")
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
    assert there(*asked, "--max-loss", "100%").status == 1
    assert there(*asked, "--max-loss", "100%", "--service", "web,headless").status == 0
    assert there(*asked, "--strict").status == 3
    assert "Not judged: default/elsewhere" in there(*asked).out


def test_ports_that_lead_to_other_pods_are_judged_apart(there: Command) -> None:
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
    file = _manifest(there, workload("web", 2, sidecar), other, service("web", ports=ports))
    found = _json(there, file, "--nodes", "3x")
    losses = {tuple(s["ports"]): s["worst"][0]["loss"]["upper"]["value"] for s in found["services"]}
    assert losses == {
        ("http",): pytest.approx(2 / 3, abs=1e-8),
        ("metrics",): pytest.approx(1 / 2, abs=1e-8),
    }


def test_where_there_is_no_service_no_threshold_passes(there: Command) -> None:
    there.file("nothing.yaml", "---\nnull\n---\n")
    done = there("gate", "nothing.yaml", "--nodes", "3x", "--max-loss", "1%")
    assert done.status == 1
    assert done.out.startswith("No Service is in the manifests, so the gate fails.\n")
    assert there("gate", "nothing.yaml", "--nodes", "3x").status == 0


@pytest.mark.deep
def test_what_is_not_proven_is_a_range_and_passes_no_threshold(there: Command) -> None:
    wide = workload("web", 40, template("web", cpu=1))
    near = service("web", trafficDistribution="PreferClose")
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}
    wide["spec"]["template"]["spec"]["topologySpreadConstraints"] = [
        {**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    ]
    file = _manifest(there, wide, near)
    words = ("--nodes", "6xzone=a+cpu=9,6xzone=b+cpu=9", "--max-loss", "99%", "--only", "zone")
    found = _json(there, file, *words)
    (worst,) = found["services"][0]["worst"]
    assert (worst["proven"], worst["at_most"]) == (False, 1.0)
    (violation,) = found["services"][0]["violations"]
    assert not violation["proven"]
    assert "the worst placement is not known" in violation["says"]


def test_sets_of_nodes_are_judged_where_they_are_asked_for(there: Command) -> None:
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": HOST,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
    file = _manifest(there, _web(4, topologySpreadConstraints=spread), service("web"))
    found = _json(there, file, "--nodes", "4x", "--depth", "2", "--max-loss", "50%")
    losses = {w["failure"]: w["loss"]["upper"]["value"] for w in found["services"][0]["worst"]}
    assert losses == {
        "node": pytest.approx(1 / 4, abs=1e-8),
        "set": pytest.approx(1 / 2, abs=1e-8),
    }
    assert found["passes"]


def test_nodes_that_drop_flows_whatever_fails_are_told(there: Command) -> None:
    file = _manifest(there, _web(), service("web", internalTrafficPolicy="Local"))
    (one,) = _json(there, file, "--nodes", "4x")["services"]
    assert one["dropping_nodes"] == 3
    shown = there("gate", file, "--nodes", "4x", "--seed", "1").out
    assert "default/web: up to 3 of 4 nodes have no endpoint of their own" in shown


def test_a_fix_holds_where_it_is_made(there: Command) -> None:
    file = _manifest(there, _web(), service("web"))
    asked = (*_TWO_ZONES[:2], *THRESHOLDS)
    (one,) = _json(there, file, *asked)["services"]
    assert one["fix"]["enough"]
    assert "kubernetes.io/hostname" in one["fix"]["says"]
    selector = {"matchLabels": {"app": "web"}}
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "nodeTaintsPolicy": "Honor",
            "labelSelector": selector,
        }
        for key in (HOST, ZONE)
    ]
    fixed = _manifest(there, _web(topologySpreadConstraints=spread), service("web"))
    found = _json(there, fixed, *asked)
    assert found["passes"]
    (then,) = found["services"]
    told = {each["failure"]: each["loss"] for each in one["fix"]["worst"]}
    assert {each["failure"]: each["loss"] for each in then["worst"]} == told


def test_whatif_says_the_same_of_the_objects_of_the_worst_placement(there: Command) -> None:
    file = str(FOLDER / "large-requests.yaml")
    given = ("gate", file, "--nodes", NODES, "--seed", "1")
    (one,) = _json(there, file, "--nodes", NODES)["services"]
    worst = {each["failure"]: each for each in one["worst"]}
    for kind in ("node", "zone"):
        objects = there(*given, "--only", kind, "--objects-of", "worst").out
        name = there.file("o.json", objects)
        told = there("whatif", "--from-objects", name, "--only", kind, "--seed", "1", "-o", "json")
        (first, *_) = json.loads(told.out)["failures"]
        assert first["worst_loss"]["upper"] == worst[kind]["loss"]["upper"]
    expected = json.loads(there(*given, "--objects-of", "expected").out)
    assert {i["kind"] for i in expected["items"]} == {"Node", "Service", "EndpointSlice"}


# --- formats -------------------------------------------------------------------


def _sarif(command: Command, *words: str) -> Any:
    return json.loads(command("gate", *words, "-o", "sarif").out)


def test_sarif_has_what_code_scanning_reads(there: Command) -> None:
    name = "fixtures/manifests/redis ha.yaml"
    (there.folder / "fixtures" / "manifests").mkdir(parents=True)
    (there.folder / name).write_text((FOLDER / "redis-ha.yaml").read_text())
    found = _sarif(there, name, "--nodes", NODES, *THRESHOLDS, "--seed", "1")
    assert found["version"] == "2.1.0"
    (run,) = found["runs"]
    rules = [each["id"] for each in run["tool"]["driver"]["rules"]]
    (result,) = run["results"]
    assert rules[result["ruleIndex"]] == result["ruleId"] == "max-loss"
    assert result["level"] == "error"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "fixtures/manifests/redis%20ha.yaml"
    lines = (there.folder / name).read_text().split("\n")
    assert lines[place["region"]["startLine"] - 1] == "apiVersion: apps/v1"
    related = result["relatedLocations"][0]["physicalLocation"]
    assert lines[related["region"]["startLine"]] == "kind: Service"
    assert "loses 100.0% with zone a" in result["message"]["text"]
    assert result["partialFingerprints"]


def test_sarif_has_the_structure_of_its_schema() -> None:
    text = "\x1b[31m<&\"'\u202e"
    document = json.loads(render_sarif(gate_answer(text)))
    assert "\x1b" not in json.dumps(document, ensure_ascii=False)
    assert set(document) == {"$schema", "version", "runs"}
    for run in document["runs"]:
        assert set(run) <= {"tool", "columnKind", "results"}
        for result in run["results"]:
            assert result["level"] in {"none", "note", "warning", "error"}
            assert isinstance(result["message"]["text"], str)
            for location in [*result["locations"], *result.get("relatedLocations", [])]:
                assert location["physicalLocation"]["region"]["startLine"] >= 1
    assert {r["ruleId"] for r in document["runs"][0]["results"]} == {
        "max-loss", "min-survives", "pending", "not-judged",
    }  # fmt: skip


def test_junit_has_a_case_for_each_service_and_kind(there: Command) -> None:
    file = _manifest(there, _web(), service("web"))
    result = there("gate", file, *_TWO_ZONES, "--max-loss", "50%", "-o", "junit")
    root = ET.fromstring(result.out)  # noqa: S314  # what this program wrote
    suites = {each.get("name"): each for each in root}
    assert set(suites) == {
        "loss with a failure of node", "loss with a failure of zone", "nodes survived",
    }  # fmt: skip
    failed = [
        each.get("name") for each in root.iter("testcase") if each.find("failure") is not None
    ]
    assert failed == ["default/web", "default/web"]


def test_tsv_has_a_line_for_each_service_and_kind(there: Command) -> None:
    file = _manifest(there, _web(), service("web"))
    header, *lines = there("gate", file, *_TWO_ZONES, "-o", "tsv").out.splitlines()
    rows = [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]
    assert [(r["failure"], r["loss"], r["pods"], r["proven"]) for r in rows] == [
        ("node", "1", "a-1=2", "yes"), ("zone", "1", "a-1=2", "yes"),
    ]  # fmt: skip


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("colour", [True, False])
def test_the_report_fits_a_terminal(width: int, colour: bool) -> None:
    shown = render_terminal(render_text(gate_answer("odd")), width=width, colour=colour)
    table = [line for line in shown.splitlines() if "SERVICE" in line]
    assert table
    assert "VERDICT" in table[0]
    if not colour:
        assert all(len(line) <= width for line in shown.splitlines())


def test_where_room_is_scarce_pods_of_others_may_come_first(there: Command) -> None:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    web = _web(2, affinity=anti, cpu=1)
    file = _manifest(there, web, service("web"), workload("big", 2, template("big", cpu=2)))
    (alone,) = _json(there, file, "--nodes", "4xcpu=2")["services"]
    assert alone["worst"][0]["loss"]["upper"]["value"] == pytest.approx(1 / 2)
    # With both of the others there first one node is left for two pods that want one each.
    result = there("gate", file, "--nodes", "3xcpu=2", "--max-loss", "50%", "--seed", "1")
    assert result.status == 1
    assert "default/web loses 100.0% with node node-1" in result.out
    assert "Pods of it may find no node" in result.out
