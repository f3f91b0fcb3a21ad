"""``kubeodds/services/1``."""

from __future__ import annotations

from typing import Any

from analyzer.kubeproxy.view import Frontend, ServicePort
from analyzer.model.probability import NEVER
from analyzer.model.services import ApiServicePort
from analyzer.reports import json_values as values
from analyzer.reports.answers import ServicesAnswer
from analyzer.reports.other_routes import other_routes


def render(answer: ServicesAnswer) -> str:
    """Return the Services with their exact shares."""
    source = {
        "format": answer.ruleset.input_format,
        "mode": answer.view.mode,
        "rules": answer.ruleset.rules,
        "node": answer.view.node,
    }
    fields = {
        "source": source,
        "services": [_service(s, answer) for s in answer.services],
        "diagnostics": values.diagnostics(answer.diagnostics),
    }
    return values.document("services", 1, fields)


def _service(service: ServicePort, answer: ServicesAnswer) -> dict[str, Any]:
    cluster = answer.cluster
    main = service.cluster_route
    shares = main.shares if main is not None else ()
    unresolved = main.unresolved if main is not None else NEVER
    affinity = None if service.affinity is None else {"timeout_seconds": service.affinity}
    return {
        **values.name(service),
        "session_affinity": affinity,
        "frontends": [_frontend(service, f) for f in service.frontends],
        "endpoints": values.shares(shares, cluster),
        "routes": [
            {
                **values.route(r),
                "endpoints": values.shares(r.shares, cluster),
                "unresolved": values.probability(r.unresolved),
            }
            for r in other_routes(
                service.routes,
                lambda route: route,
                lambda route: route.shares == shares and route.unresolved == unresolved,
            )
        ],
        "api": _api(answer.specs.get((service.name.text, service.protocol))),
    }


def _api(spec: ApiServicePort | None) -> dict[str, Any] | None:
    """Return what the API says of a ServicePort: its policies, and all its endpoints."""
    if spec is None:
        return None
    external = spec.external_local
    return {
        "internal_traffic_policy": _policy(spec.internal_local),
        "external_traffic_policy": None if external is None else _policy(external),
        "endpoints": [
            {
                "address": str(each.address),
                "port": each.port,
                "node": each.node,
                "ready": each.is_ready,
                "serving_terminating": each.may_serve,
                "hints": {"zones": sorted(each.zones), "nodes": sorted(each.nodes)},
            }
            for each in spec.endpoints
        ],
    }


def _policy(local: bool) -> str:
    return "Local" if local else "Cluster"


def _frontend(service: ServicePort, frontend: Frontend) -> dict[str, Any]:
    return {
        **values.frontend(frontend),
        "state": service.state(frontend).value,
        "refusal": dict(service.refusals).get(frontend),
    }
