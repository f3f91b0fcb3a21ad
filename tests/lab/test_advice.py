"""What measures leave of a Service, on the kernel: the very rules that were predicted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analyzer.advice.advise import ServiceCosts
from analyzer.advice.measure import ClusterState
from analyzer.advice.measures import measure_of
from analyzer.kubeproxy.predict.cluster import rules_of_node
from tests.support.advised import KEY, SETTINGS, judged, node, service, slice_of
from tests.support.lab.running import lab_run

pytestmark = pytest.mark.lab
ITEMS = [*(node(f"worker{n}", n) for n in range(3)), service(), slice_of([("worker0", 0)] * 2)]


@pytest.mark.alike(1)
@pytest.mark.parametrize(
    ("name", "lost"), [("replica", 2 / 3), ("spread", 1 / 2), ("every-node", 1 / 3)]
)
def test_the_kernel_loses_what_a_measure_was_said_to_leave(
    tmp_path: Path, name: str, lost: float
) -> None:
    measure = measure_of(name)
    assert measure is not None
    changed = measure.change(ClusterState(items=ITEMS), KEY)
    assert isinstance(changed, ClusterState)
    outcome = judged(changed.items, dead=("worker0",))
    assert isinstance(outcome, ServiceCosts)
    told = float(outcome.score.worst.loss.upper)
    assert told == pytest.approx(lost, abs=1e-8)
    (rules,) = rules_of_node(changed.items, SETTINGS, "worker2", [])
    dump, objects = tmp_path / "dump.txt", tmp_path / "objects.json"
    dump.write_text(rules)
    objects.write_text(json.dumps({"kind": "List", "items": [*changed.items]}))
    status, found, _ = lab_run(
        str(dump), "--objects", str(objects), "--node", "worker2", "--dead-node", "worker0",
        "--flows", "3000",
    )  # fmt: skip
    assert (status, found["agrees"]) == (0, True)
    (each,) = found["measurements"]
    dead = [e for e in each["endpoints"] if e["dead"]]
    assert sum(e["predicted"]["lower"]["value"] for e in dead) == pytest.approx(told, abs=1e-9)
    assert sum(e["landed"] for e in dead) == pytest.approx(3000 * told, abs=150)
