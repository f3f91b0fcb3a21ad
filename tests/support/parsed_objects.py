"""API objects in files, as the cluster that they describe."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.model.cluster import Cluster
from analyzer.parsers.api_objects import decode
from analyzer.parsers.kubernetes import cluster_of


def parse_objects(files: Sequence[tuple[str, bytes]]) -> Cluster:
    """Read the objects of all files, given as name and content.

    Raises:
        InputError: a file is no list of API objects, or contains none that are used.
        ParseError: a file is not JSON.
    """
    return cluster_of(decode(files), ", ".join(name for name, _ in files))
