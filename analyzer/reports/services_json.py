"""``kubeodds/services/1``."""

from __future__ import annotations

from typing import Any

from analyzer.kubeproxy.view import Frontend, ServicePort
from analyzer.model.cluster import Cluster
from analyzer.model.probability import NEVER
from analyzer.reports import json_values as values
from analyzer.reports.answers import ServicesAnswer


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
        "services": [_service(s, answer.cluster) for s in answer.services],
        "diagnostics": values.diagnostics(answer.diagnostics),
    }
    return values.document("services", 1, fields)


def _service(service: ServicePort, cluster: Cluster) -> dict[str, Any]:
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
            for r in service.routes
            if r.shares != shares or r.unresolved != unresolved
        ],
    }


def _frontend(service: ServicePort, frontend: Frontend) -> dict[str, Any]:
    return {
        **values.frontend(frontend),
        "state": service.state(frontend).value,
        "refusal": dict(service.refusals).get(frontend),
    }
