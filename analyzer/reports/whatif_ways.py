"""A route in the words of ``whatif``."""

from __future__ import annotations

from analyzer.failure.incidence import Row
from analyzer.reports.phrases import SOURCES


def brief_way(row: Row) -> str:
    """Return a route in the short form of `loss`, for a cell."""
    source, network = row.route.source.value, row.route.network
    within = "" if network is None else f" {network}"
    return f"{source}{within} to {row.route.frontend.kind.value}"


def way(row: Row) -> str:
    """Return a route as part of a sentence."""
    frontend, source = row.route.frontend, SOURCES[row.route.source]
    network = "" if row.route.network is None else f" in {row.route.network}"
    return f"from {source}{network} to {frontend.kind.value} {frontend}"
