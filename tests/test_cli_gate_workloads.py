"""``gate`` on workloads that are scaled, and on pods of StatefulSets that are selected by name."""

from __future__ import annotations

import json

import pytest

from tests.support.commands import Command
from tests.support.gate_commands import TWO_ZONES, json_of, manifest, spread, web
from tests.support.gated import HOST, POD_INDEX, POD_NAME, ZONE, scaler, service, stateful, template

_HALF = ("--max-loss", "50%")


def _scaled(least: int, most: int, *, replicas: int = 2) -> list[object]:
    given = web(replicas, topologySpreadConstraints=[spread(topologyKey=ZONE)])
    return [given, scaler("web", least, most), service("web")]


def test_the_worst_of_all_numbers_is_told_with_its_number(command: Command) -> None:
    result = command("gate", manifest(command, *_scaled(2, 4)), *TWO_ZONES, *_HALF, "--strict")
    assert (result.status, result.err) == (1, "")
    assert "default/web loses 66.7% if zone a fails at 3 replicas; allowed: 50%." in result.out
    assert "default/web  2 to 4" in result.out
    assert "deployment default/web has 2 to 4 pods, as its autoscaler allows" in result.out
    (one,) = json_of(command, "m.yaml", *TWO_ZONES[:2], *_HALF)["services"]
    (by_node, zone) = one["worst"]
    assert zone["replicas"] == [{"workload": "deployment default/web", "number": 3}]
    assert (zone["proven"], by_node["proven"]) == (True, True)
    (behind,) = one["workloads"]
    assert (behind["replicas"], behind["most_replicas"]) == (2, 4)
    header, *lines = command("gate", "m.yaml", *TWO_ZONES, "-o", "tsv").out.splitlines()
    rows = [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]
    assert {each["replicas"] for each in rows} == {"deployment default/web=3"}


@pytest.mark.parametrize(
    ("least", "most", "replicas", "status"),
    [(2, 2, 2, 0), (4, 4, 2, 0), (2, 3, 2, 1), (4, 9, 2, 1), (2, 9, 0, 1)],
)
def test_a_range_passes_where_each_of_its_numbers_does(
    command: Command, least: int, most: int, replicas: int, status: int
) -> None:
    file = manifest(command, *_scaled(least, most, replicas=replicas))
    assert command("gate", file, *TWO_ZONES, *_HALF).status == status


def test_of_no_replicas_an_autoscaler_makes_none(command: Command) -> None:
    result = command("gate", manifest(command, *_scaled(2, 9, replicas=0)), *TWO_ZONES, *_HALF)
    assert "default/web may have no running pod" in result.out


def test_pods_that_wait_at_the_most_alone_are_told_and_fail_nothing(command: Command) -> None:
    items = [web(2, cpu=1), scaler("web", 2, 9), service("web")]
    file = manifest(command, *items)
    result = command("gate", file, "--nodes", "4xcpu=2", "--seed", "1")
    assert result.status == 0
    assert "Pending: deployment default/web: 1 of 9 pods may stay Pending" in result.out


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ([scaler("web", 5, 3)], "spec.maxReplicas: 3 is less than minReplicas, 5"),
        ([scaler("web", 2, 0)], "spec.maxReplicas: expected an integer from 1 to 10,000, not 0"),
        (
            [scaler("web", 2, 3), {**scaler("web", 2, 4), "metadata": {"name": "other"}}],
            "scales Deployment web, as does HorizontalPodAutoscaler default/web",
        ),
    ],
)
def test_an_autoscaler_that_cannot_be_is_refused(
    command: Command, bad: list[object], says: str
) -> None:
    result = command("gate", manifest(command, web(), service("web"), *bad), *TWO_ZONES)
    assert result.status == 2
    assert says in result.err


def test_a_service_of_one_pod_of_a_statefulset_is_judged(command: Command) -> None:
    apart = spread(topologyKey=HOST, labelSelector={"matchLabels": {"app": "db"}})
    made = stateful("db", 3, template("db", topologySpreadConstraints=[apart]))
    made["spec"]["ordinals"] = {"start": 1}
    services = [
        service("db"),
        {**service("one", selector={POD_NAME: "db-1"})},
        {**service("two", selector={POD_INDEX: "2"})},
        {**service("none", selector={POD_NAME: "db-0"})},
    ]
    found = json_of(command, manifest(command, made, *services), "--nodes", "4xzone=a")
    losses = {s["service"]: s["worst"][0]["loss"]["upper"]["value"] for s in found["services"]}
    assert losses == {"db": pytest.approx(1 / 3, abs=1e-8), "one": 1.0, "two": 1.0}
    (none,) = found["not_judged"]
    assert none["why"] == "its selector selects no pods of these manifests"
    (one,) = [s for s in found["services"] if s["service"] == "one"]
    assert one["allowed"] == ["statefulset default/db: a single pod"]
    assert sum(each["number"] for each in one["worst"][0]["pods"]) == 1


def test_an_unknown_field_is_in_every_format(command: Command) -> None:
    file = manifest(command, web(topologySpreadConstraint=[]), service("web"))
    path = "spec.template.spec.topologySpreadConstraint"
    for form in ("text", "markdown", "json", "sarif", "junit"):
        result = command("gate", file, *TWO_ZONES, "--max-loss", "100%", "-o", form)
        assert result.status == 1
        assert path in result.out
        assert f"{path}: unknown field; did you mean topologySpreadConstraints?" in result.err
    found = json.loads(command("gate", file, *TWO_ZONES, "-o", "json").out)
    assert [each["path"] for each in found["unknown_fields"]] == [path]
    assert command("gate", file, *TWO_ZONES).status == 0
    assert command("gate", file, *TWO_ZONES, "--strict").status == 3
