"""The worst placement of manifests, on the kernel: it loses what the gate says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analyzer.kubeproxy.predict.cluster import rules_of_node
from analyzer.kubeproxy.predict.settings import ClusterSettings
from tests.support.commands import Command
from tests.support.effort import PROFILE
from tests.support.gate_manifests import EXPECTED, FOLDER, MEASURED, NODES
from tests.support.lab.running import lab_run

pytestmark = pytest.mark.lab


#: Each takes seconds: in the quick check one of them.
_ASKED = MEASURED[:1] if PROFILE == "quick" else MEASURED


@pytest.mark.parametrize("name", _ASKED)
def test_the_kernel_loses_what_the_gate_says_of_the_worst_placement(
    tmp_path: Path, name: str, command: Command
) -> None:
    manifest, expected = str(FOLDER / f"{name}.yaml"), EXPECTED[name]
    given = ("gate", manifest, "--nodes", NODES, "--seed", "1", "--only", "node")
    verdict = json.loads(command(*given, "-o", "json").out)
    (service,) = verdict["services"]
    (worst,) = service["worst"]
    told = worst["loss"]["upper"]["value"]
    assert told == pytest.approx(expected.node[0] / expected.node[1], abs=1e-8)
    (dead,) = worst["names"]
    printed = command(*given, "--objects-of", "worst").out
    items = json.loads(printed)["items"]
    living = next(n["metadata"]["name"] for n in items if n["metadata"]["name"] != dead)
    (rules,) = rules_of_node(items, ClusterSettings(), living, [])
    dump, objects = tmp_path / "dump.txt", tmp_path / "objects.json"
    dump.write_text(rules)
    objects.write_text(printed)
    status, found, _ = lab_run(
        str(dump), "--objects", str(objects), "--node", living, "--dead-node", dead,
        "--service", expected.service, "--flows", "3000",
    )  # fmt: skip
    assert (status, found["agrees"]) == (0, True)
    assert found["measurements"]
    for each in found["measurements"]:
        gone = [e for e in each["endpoints"] if e["dead"]]
        assert sum(e["predicted"]["lower"]["value"] for e in gone) == pytest.approx(told, abs=1e-8)
        assert sum(e["landed"] for e in gone) == pytest.approx(3000 * told, abs=150)
