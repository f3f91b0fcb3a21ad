"""``kubeodds/cluster-drift/1``: every difference with its nodes and the times of their dumps."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.cluster.drift_kinds import WORDS
from analyzer.cluster.store import NodeRow
from analyzer.reports import json_values as values
from analyzer.reports.cluster_drift_answer import DriftAnswer, SharedDifference

_VERSION = 1


def render(answer: DriftAnswer) -> Iterator[str]:
    """Yield the differences, one by one."""
    ages = {row.node: seconds for row, seconds in answer.behind()}
    taken = answer.objects_taken
    return values.document(
        "cluster-drift",
        {
            "against": values.encode("objects" if answer.drifted.by_objects else "majority"),
            "objects_taken": values.encode(None if taken is None else taken.isoformat()),
            "nodes": (_node(each, ages) for each in answer.rows),
            "compared": values.encode(answer.drifted.compared),
            "drifting": values.encode(list(answer.drifting)),
            "differences": map(_difference, answer.alike),
            "not_judged": values.encode(list(answer.drifted.not_judged)),
            "assumed": values.encode(list(answer.assumed)),
            "diagnostics": values.diagnostics(answer.diagnostics),
        },
        _VERSION,
    )


def _node(row: NodeRow, ages: dict[str, float]) -> str:
    return values.encode(
        {
            "node": row.node,
            "state": row.state,
            "taken": row.taken or None,
            "written_before": ages.get(row.node),
        }
    )


def _difference(each: SharedDifference) -> str:
    return values.encode(
        {
            "code": each.drift.value,
            "means": WORDS[each.drift],
            "name": each.service or None,
            "protocol": each.protocol or None,
            "family": values.family(each.version),
            "what": each.what,
            "nodes": list(each.nodes),
        }
    )
