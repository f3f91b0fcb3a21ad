"""The pieces that JSON documents share. Fields may be added, never renamed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from analyzer.kubeproxy.view import Frontend, Route, ServicePort, Share
from analyzer.model.cluster import Cluster
from analyzer.model.diagnostics import Diagnostic
from analyzer.model.probability import Bounds, Dyadic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.semantics.tree import AnyRule


def document(verb: str, version: int, fields: dict[str, Any]) -> str:
    """Return one JSON document that names its schema first.

    Only ASCII comes out, so that nothing of a dump reaches a terminal as a control character.
    """
    return json.dumps({"schema": f"kubeodds/{verb}/{version}", **fields}, indent=1) + "\n"


def probability(value: Dyadic) -> dict[str, Any]:
    """Return numerator / 2**exponent, the numerator in hexadecimal."""
    return {
        "numerator": hex(value.numerator),
        "exponent": value.exponent,
        "value": float(value),
    }


def bounds(value: Bounds) -> dict[str, Any]:
    """Return both ends."""
    return {"lower": probability(value.lower), "upper": probability(value.upper)}


def frontend(value: Frontend) -> dict[str, Any]:
    """Return a frontend; no address: any address of the node."""
    return {
        "kind": value.kind.value,
        "address": None if value.address is None else str(value.address),
        "port": value.port,
    }


def share(value: Share, cluster: Cluster) -> dict[str, Any]:
    """Return a share; where it is not known exactly it is null, and `bounds` stands beside."""
    address, exact = value.endpoint.address, value.share.is_exact
    placement = cluster.placement(address)
    found = {
        "address": str(address),
        "port": value.endpoint.port,
        "node": placement.node,
        "zone": placement.zone,
        "share": probability(value.share.lower) if exact else None,
        "masquerade": value.masquerade,
    }
    return found if exact else {**found, "bounds": bounds(value.share)}


def shares(values: Sequence[Share], cluster: Cluster) -> list[dict[str, Any]]:
    """Return the shares of one route."""
    return [share(value, cluster) for value in values]


def name(service: ServicePort) -> dict[str, Any]:
    """Return what identifies a ServicePort."""
    return {
        "name": service.name.text,
        "namespace": service.name.namespace,
        "service": service.name.service,
        "port_name": service.name.port,
        "protocol": service.protocol,
    }


def route(value: Route) -> dict[str, Any]:
    """Return what identifies a route; `network`: its sources are just those in it."""
    network = None if value.network is None else str(value.network)
    return {
        "frontend": frontend(value.frontend),
        "source": value.source.value,
        "network": network,
    }


def diagnostic(value: Diagnostic) -> dict[str, Any]:
    """Return a diagnostic."""
    return {
        "severity": value.severity.value,
        "code": value.code,
        "message": value.message,
        "file": value.file,
        "line": value.line,
        "column": value.column,
    }


def diagnostics(values: Sequence[Diagnostic]) -> list[dict[str, Any]]:
    """Return all diagnostics."""
    return [diagnostic(value) for value in values]


def rule(value: AnyRule, table: str, chain: str) -> dict[str, Any]:
    """Return a rule as evidence: where it stands and what it says."""
    return {"table": table, "chain": chain, "line": value.location.line, "text": value.raw}
