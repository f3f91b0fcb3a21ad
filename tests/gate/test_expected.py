"""Where the default scheduler's scores lead, in clusters small enough to tell by hand."""

from __future__ import annotations

from typing import Any

import pytest

from analyzer.gate.compiling import problem_of
from analyzer.gate.expected import expected_end
from analyzer.gate.nodes import described, scheduling_nodes
from analyzer.gate.templates import templates_of
from analyzer.gate.workloads import workloads
from analyzer.model.diagnostics import Location
from analyzer.parsers.manifests import Manifest
from tests.support.gated import HOST, ZONE, template, workload

_RATHER = "preferredDuringSchedulingIgnoredDuringExecution"


def _placed(nodes: str, *items: Any) -> list[list[int]]:
    found = workloads([Manifest(item, Location("m", 1), "") for item in items])
    known = scheduling_nodes(described(nodes.split(",")))
    problem = problem_of(templates_of(found), known, {}, is_described=True)
    return [list(row) for row in expected_end(problem).counts]


def _term(key: str, app: str = "a") -> Any:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


def test_pods_without_constraints_are_spread_over_nodes_and_zones() -> None:
    (row,) = _placed("2xzone=a,2xzone=b", workload("a", 2, template("a")))
    assert row == [1, 0, 1, 0]
    (row,) = _placed("2xzone=a,2xzone=b", workload("a", 4, template("a")))
    assert row == [1, 1, 1, 1]


def test_a_node_with_more_room_is_preferred() -> None:
    (row,) = _placed(
        "1xcpu=2+memory=4Gi,1xcpu=8+memory=16Gi", workload("a", 1, template("a", cpu=1))
    )
    assert row == [0, 1]


#: Without it the scheduler's own constraints would spread the pods.
_ANYWHERE = [{**_term(ZONE, "none"), "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}]
_BESIDE = [{"weight": 100, "podAffinityTerm": _term(HOST)}]
_DISK = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}


@pytest.mark.parametrize(
    ("affinity", "row"),
    [
        ({"podAffinity": {_RATHER: _BESIDE}}, [2, 0, 0]),
        ({"podAntiAffinity": {_RATHER: _BESIDE}}, [1, 1, 0]),
        ({"nodeAffinity": {_RATHER: [{"weight": 100, "preference": _DISK}]}}, [0, 0, 2]),
    ],
)
def test_wishes_of_pods_are_heard(affinity: Any, row: list[int]) -> None:
    spec = {"affinity": affinity, "topologySpreadConstraints": _ANYWHERE}
    assert _placed("2xzone=a,1xzone=b+disk=ssd", workload("a", 2, template("a", **spec))) == [row]


def test_a_pod_that_waits_for_another_is_placed_after_it() -> None:
    needs = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term(HOST, "b")]}}
    first, second = _placed(
        "3x", workload("a", 1, template("a", affinity=needs)), workload("b", 1, template("b"))
    )
    assert first == second
