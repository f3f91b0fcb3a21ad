"""``kubeodds/diff/1``."""

from __future__ import annotations

from typing import Any

from analyzer.kubeproxy.diff.beside import Beside
from analyzer.kubeproxy.diff.changes import Change, EndpointChange, Otherwise, ServiceChange, Way
from analyzer.kubeproxy.diff.dumps import Dump
from analyzer.kubeproxy.view import Endpoint, ServicePort
from analyzer.model.probability import Bounds
from analyzer.reports import json_values as values
from analyzer.reports.answers import DiffAnswer
from analyzer.reports.rules import chain_of
from analyzer.semantics.base_chains import Rules
from analyzer.semantics.tree import AnyRule


def render(answer: DiffAnswer) -> str:
    """Return what differs; whatever is not named is the same in both dumps."""
    found = answer.difference
    counted = {"gone": 0, "added": 0, "changed": 0, "unknown": 0}
    for change in found.changes:
        counted[_state(change)] += 1
    fields = {
        "a": _dump(answer.a, answer.rulesets[0]),
        "b": _dump(answer.b, answer.rulesets[1]),
        "ip_versions": list(answer.versions),
        "verdict": found.verdict.value,
        "services": [_service(change, answer) for change in found.changes],
        "beside": [_beside(each) for each in found.beside],
        "totals": {**counted, "both": found.both, "alike_but_unknown": found.alike},
        "diagnostics": values.diagnostics(answer.diagnostics),
    }
    return values.document("diff", 1, fields)


def _dump(dump: Dump, ruleset: Rules) -> dict[str, Any]:
    return {
        "file": dump.file,
        "format": ruleset.input_format,
        "mode": dump.view.mode,
        "rules": ruleset.rules,
        "node": dump.view.node,
        "ip_versions": list(dump.versions),
        "services": len(dump.view.services),
    }


def _state(change: ServiceChange) -> str:
    if not change.is_certain:
        return "unknown"
    if change.b is None:
        return "gone"
    return "added" if change.a is None else "changed"


def _service(change: ServiceChange, answer: DiffAnswer) -> dict[str, Any]:
    there = change.a or change.b
    assert there is not None
    return {
        "name": change.name.text,
        "namespace": change.name.namespace,
        "service": change.name.service,
        "port_name": change.name.port,
        "protocol": change.protocol,
        "ip_version": change.version,
        "change": _state(change),
        "frontends_gone": [values.frontend(frontend) for frontend in change.gone],
        "frontends_added": [values.frontend(frontend) for frontend in change.added],
        "session_affinity": None
        if change.affinity is None
        else {"a": _affinity(change.affinity[0]), "b": _affinity(change.affinity[1])},
        "routes": [
            {"routes": [_way(way) for way in each.ways], **_change(each.change, answer)}
            for each in change.routes
        ],
        "endpoints_a": _endpoints(change.a),
        "endpoints_b": _endpoints(change.b),
    }


def _endpoints(service: ServicePort | None) -> int | None:
    return None if service is None else len(service.endpoints)


def _affinity(seconds: int | None) -> dict[str, int] | None:
    return None if seconds is None else {"timeout_seconds": seconds}


def _way(way: Way) -> dict[str, Any]:
    network = None if way.network is None else str(way.network)
    return {
        "frontend": values.frontend(way.frontend),
        "source": way.source.value,
        "network": network,
        "but": [str(each) for each in way.but],
    }


def _change(change: Change, answer: DiffAnswer) -> dict[str, Any]:
    gone = [each for each in change.endpoints if each.b is None]
    added = [each for each in change.endpoints if each.a is None]
    moved = [each for each in change.endpoints if each.a is not None and each.b is not None]
    return {
        "endpoints_gone": [_moved(each, answer) for each in gone],
        "endpoints_added": [_moved(each, answer) for each in added],
        "shares_moved": [_moved(each, answer) for each in moved],
        "each_endpoint_one_of": None
        if change.each is None
        else {"a": change.each[0], "b": change.each[1]},
        "masquerade": [
            {**_endpoint(each.endpoint, answer), "a": each.a, "b": each.b}
            for each in change.masquerade
        ],
        "otherwise": None
        if change.otherwise is None
        else {"a": _ends(change.otherwise[0]), "b": _ends(change.otherwise[1])},
        "unknown": list(change.unknown),
    }


def _endpoint(endpoint: Endpoint, answer: DiffAnswer) -> dict[str, Any]:
    placement = answer.cluster.placement(endpoint.address)
    return {
        "address": str(endpoint.address),
        "port": endpoint.port,
        "node": placement.node,
        "zone": placement.zone,
    }


def _moved(each: EndpointChange, answer: DiffAnswer) -> dict[str, Any]:
    return {**_endpoint(each.endpoint, answer), "a": _bounds(each.a), "b": _bounds(each.b)}


def _bounds(share: Bounds | None) -> dict[str, Any] | None:
    return None if share is None else values.bounds(share)


def _ends(ends: Otherwise) -> list[dict[str, Any]]:
    return [{"outcome": kind, "probability": values.bounds(share)} for kind, share in ends]


def _beside(each: Beside) -> dict[str, Any]:
    return {
        "topic": each.topic.value,
        "intended": each.is_intended,
        "certain": each.is_certain,
        "ip_version": each.version,
        "sources": [source.value for source in each.sources],
        "places": [{"address": str(to.address), "port": to.port} for to in each.places],
        "a": {"ends": _ends(each.a), "rules": _rules(each.rules_a)},
        "b": {"ends": _ends(each.b), "rules": _rules(each.rules_b)},
    }


def _rules(rules: tuple[AnyRule, ...]) -> list[dict[str, Any]]:
    return [values.rule(rule, rule.location.table, chain_of(rule)) for rule in rules]
