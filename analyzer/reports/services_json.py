"""``kubeodds/services/1``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from analyzer.kubeproxy.view import Frontend, Route, ServicePort, Share, Source
from analyzer.model.probability import NEVER, Dyadic
from analyzer.model.services import ApiServicePort
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
            for r in _other_routes(service, shares, unresolved)
        ],
        "api": _api(answer.specs.get((service.name.text, service.protocol))),
    }


def _other_routes(
    service: ServicePort, shares: Sequence[Share], unresolved: Dyadic
) -> Iterator[Route]:
    """Give the routes of each frontend and source of which one is not as those `shares`.

    Where networks part the sources all are given, since none of them speaks for all.
    """
    together: dict[tuple[Frontend, Source], list[Route]] = {}
    for route in service.routes:
        together.setdefault((route.frontend, route.source), []).append(route)
    for routes in together.values():
        if any(r.shares != shares or r.unresolved != unresolved for r in routes):
            yield from routes


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
