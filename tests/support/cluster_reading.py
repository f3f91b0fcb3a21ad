"""Dumps of a cluster, read by one worker after the other as `cluster build` does it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analyzer.node_dumps.sources import Task
from analyzer.node_dumps.worker import Reader, ReadSettings, TaskResult
from analyzer.parsers.contents import MOST_BYTES
from analyzer.semantics.assumed import DEFAULTS

OPTIONS: dict[str, Any] = {
    "input_format": None,
    "table": None,
    "max_input": MOST_BYTES,
    "node_of": [],
    "assumed": DEFAULTS,
}


def reader(objects: Path | None = None, *, shares: bool = True) -> Reader:
    """Return a worker's reader; with `shares` it compares dumps with those before them."""
    given = "" if objects is None else str(objects)
    return Reader(ReadSettings(objects=given, options=OPTIONS, shares=shares))


def task(node: str, *dumps: str) -> Task:
    """Return what is to be read of one node: the texts of its dumps."""
    return Task(
        source=node,
        node=node,
        files=tuple(f"held:{node}-{number}" for number in range(len(dumps))),
        held=tuple(each.encode("utf-8", "surrogateescape") for each in dumps),
    )


def objects_file(folder: Path, items: Sequence[Any]) -> Path:
    """Write API objects, and return where."""
    path = folder / "objects.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [*items]}))
    return path


def said(result: TaskResult) -> list[Any]:
    """Return what a result says of nodes, whichever way they were read."""
    rows = [
        (n.node, n.state, n.reason, n.map, n.mode, n.rules, n.cut, n.left_out, n.unled, n.facts)
        for n in result.nodes
    ]
    return [rows, {node: sorted(map(str, told)) for node, told in result.diagnostics.items()}]
