"""``gate`` in each format."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from analyzer.reports.gate_answer import placed_words
from analyzer.reports.gate_sarif import render as render_sarif
from analyzer.reports.gate_text import render as render_text
from analyzer.reports.terminal import render_terminal
from tests.support.commands import Command
from tests.support.gate_answers import gate_answer
from tests.support.gate_commands import TWO_ZONES, manifest, web
from tests.support.gate_manifests import FOLDER, NODES, THRESHOLDS
from tests.support.gated import service


def _sarif(command: Command, *words: str) -> Any:
    return json.loads(command("gate", *words, "-o", "sarif").out)


def test_sarif_has_what_code_scanning_reads(command: Command) -> None:
    name = "fixtures/manifests/redis ha.yaml"
    (command.folder / "fixtures" / "manifests").mkdir(parents=True)
    (command.folder / name).write_text((FOLDER / "redis-ha.yaml").read_text())
    found = _sarif(command, name, "--nodes", NODES, *THRESHOLDS, "--seed", "1")
    assert found["version"] == "2.1.0"
    (run,) = found["runs"]
    rules = [each["id"] for each in run["tool"]["driver"]["rules"]]
    (result,) = run["results"]
    assert rules[result["ruleIndex"]] == result["ruleId"] == "max-loss"
    assert result["level"] == "error"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "fixtures/manifests/redis%20ha.yaml"
    lines = (command.folder / name).read_text().split("\n")
    assert lines[place["region"]["startLine"] - 1] == "apiVersion: apps/v1"
    related = result["relatedLocations"][0]["physicalLocation"]
    assert lines[related["region"]["startLine"]] == "kind: Service"
    assert "loses 100.0% if zone a fails" in result["message"]["text"]
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
        "max-loss", "min-survives", "pending", "not-judged", "unknown-field",
    }  # fmt: skip


def test_junit_has_a_case_for_each_service_and_kind(command: Command) -> None:
    file = manifest(command, web(), service("web"))
    result = command("gate", file, *TWO_ZONES, "--max-loss", "50%", "-o", "junit")
    root = ET.fromstring(result.out)  # noqa: S314  # what this program wrote
    suites = {each.get("name"): each for each in root}
    assert set(suites) == {
        "loss with a failure of node", "loss with a failure of zone", "nodes survived",
    }  # fmt: skip
    failed = [
        each.get("name") for each in root.iter("testcase") if each.find("failure") is not None
    ]
    assert failed == ["default/web", "default/web"]


def test_tsv_has_a_line_for_each_service_and_kind(command: Command) -> None:
    file = manifest(command, web(), service("web"))
    header, *lines = command("gate", file, *TWO_ZONES, "-o", "tsv").out.splitlines()
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


@pytest.mark.parametrize(
    ("most", "says"),
    [(1, "a (3) and 2 more nodes"), (2, "a (3), b and 1 more node"), (3, "a (3), b, c")],
)
def test_nodes_that_are_not_named_are_counted(most: int, says: str) -> None:
    case: Any = SimpleNamespace(places=lambda _: [("b", 1), ("a", 3), ("c", 1)])
    answer: Any = SimpleNamespace(problem=None)
    assert placed_words(answer, case, most) == says
