"""Why a route is not measured: each that is left out is named with its reason."""

from __future__ import annotations

from analyzer.kubeproxy.view import FrontendKind, Route, ServicePort, Source
from netns_lab.layout import PROTOCOLS


def why_not(service: ServicePort, route: Route) -> str | None:
    """Return why the flows of a route cannot be replayed; None when they can."""
    if service.protocol not in PROTOCOLS:
        return f"the lab builds no packets of {service.protocol}"
    if route.frontend.port is None:
        return f"the dump has lost the port of {route.frontend}"
    if service.affinity is not None and route.source is Source.HAIRPIN:
        return "an endpoint with session affinity is one client, which is drawn for once"
    if not route.shares and not route.astray:
        return "it has no endpoints, and how its flows from there end is not predicted"
    return None


def passes_by(route: Route) -> bool:
    """Tell whether flows may pass by the rules that refuse a frontend without endpoints.

    Those of external addresses are asked in INPUT and FORWARD; what the node itself sends passes
    neither. Measured: 1.36.2-iptables-legacy/features, feat/no-endpoints-lb.
    """
    outer = (FrontendKind.EXTERNAL_IP, FrontendKind.LOAD_BALANCER_IP)
    return route.source is Source.NODE and route.frontend.kind in outer
