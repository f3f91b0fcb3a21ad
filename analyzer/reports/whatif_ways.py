"""A route in the words of ``whatif``."""

from __future__ import annotations

from analyzer.failure.incidence import RouteRow
from analyzer.reports.phrases import SOURCES
from analyzer.reports.route_networks import networks


def brief_way(row: RouteRow) -> str:
    """Return a route in the short form of `loss`, for a cell."""
    source, within = row.route.source.value, networks(row.route)
    within = f" {within}" if within else ""
    return f"{source}{within} to {row.route.frontend.kind.value}"


def way(row: RouteRow) -> str:
    """Return a route as part of a sentence."""
    frontend, source = row.route.frontend, SOURCES[row.route.source]
    network = "" if row.route.network is None else f" in {networks(row.route)}"
    return f"from {source}{network} to {frontend.kind.value} {frontend}"
