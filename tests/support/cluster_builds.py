"""Builds of a small cluster, and what they keep."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from analyzer.cluster.store import Store

#: Nodes of the cluster.
NODES: Final = 6


def words(folder: Path, *more: str, engine: str = "serial") -> list[str]:
    objects = ["--objects", str(folder / "objects.json")]
    return [str(folder), *objects, "--into", "made", "--engine", engine, *more]


def kept(folder: str | Path = "made") -> dict[str, tuple[str, str]]:
    """Return of each node its map, or why it failed."""
    store = Store.open(str(folder))
    try:
        return {each.node: (each.map, each.reason) for each in store.nodes()}
    finally:
        store.close()
