"""``kubeodds/cluster-build/1``: every node with its state, and the size of the store."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.cluster.store import NodeRow
from analyzer.reports import json_values as values
from analyzer.reports.cluster_build_answer import BuildAnswer

_VERSION = 1


def render(answer: BuildAnswer) -> Iterator[str]:
    """Yield the nodes, one by one."""
    return values.document(
        "cluster-build",
        {
            "folder": values.encode(answer.folder),
            "nodes": map(_node, answer.nodes),
            "done": values.encode(len(answer.done)),
            "failed": values.encode(len(answer.failed)),
            "read": values.encode(answer.read),
            "contents": values.encode(dict(answer.contents)),
            "bytes": values.encode(answer.bytes),
            "diagnostics": values.diagnostics(answer.diagnostics),
        },
        _VERSION,
    )


def _node(node: NodeRow) -> str:
    return values.encode(
        {
            "node": node.node,
            "state": node.state,
            "reason": node.reason or None,
            "files": list(node.files),
            "taken": node.taken or None,
            "mode": node.mode or None,
            "rules": node.rules,
        }
    )
