"""The title of a picture of a route."""

from __future__ import annotations

from analyzer.kubeproxy.view import Route, ServicePort
from analyzer.reports.phrases import SOURCES
from analyzer.reports.route_networks import networks


def route_title(service: ServicePort, route: Route) -> str:
    """Return the source and the frontend of a route."""
    within = "" if route.network is None else f" ({networks(route)})"
    frontend = f"{route.frontend.kind.value} {route.frontend}"
    source = f"{SOURCES[route.source]}{within}"
    return f"{service.name.text} {service.protocol}: from {source} to {frontend}"
