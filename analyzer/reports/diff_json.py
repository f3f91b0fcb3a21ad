"""``kubeodds/diff/2``: what changes from A to B.

A ServicePort lists each endpoint that is mentioned once and refers to it by its index there; rules
are referred to by their index in the list of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from analyzer.kubeproxy.diff.beside import NonServiceFlows
from analyzer.kubeproxy.diff.changes import (
    Change,
    EndpointChange,
    Otherwise,
    RouteIdentity,
    ServiceChange,
)
from analyzer.kubeproxy.diff.dumps import Dump
from analyzer.kubeproxy.view import Endpoint, ServicePort
from analyzer.model.probability import Bounds
from analyzer.reports import json_values as values
from analyzer.reports.diff_answer import DiffAnswer
from analyzer.reports.json_distributions import distribution
from analyzer.reports.json_endpoints import EndpointTexts
from analyzer.semantics.base_chains import Rules


def render(answer: DiffAnswer) -> Iterator[str]:
    """Yield what differs; whatever is not mentioned is the same in both dumps."""
    found = answer.difference
    counted = {"gone": 0, "added": 0, "changed": 0, "unknown": 0}
    for change in found.changes:
        counted[_state(change)] += 1
    totals = {**counted, "both": found.both, "alike_but_unknown": found.alike}
    endpoints, rules = EndpointTexts(answer.cluster), values.RuleNumbers()
    return values.document(
        "diff",
        {
            "a": values.encode(_dump(answer.a, answer.rulesets[0])),
            "b": values.encode(_dump(answer.b, answer.rulesets[1])),
            "families": values.encode(_families(answer.versions)),
            "verdict": values.encode(found.verdict.value),
            "services": (_service(change, endpoints) for change in found.changes),
            "beside": (values.encode(_beside(each, rules)) for each in found.beside),
            "rules": rules.written(),
            "totals": values.encode(totals),
            "diagnostics": values.diagnostics(answer.diagnostics),
        },
    )


def _families(versions: Sequence[int]) -> list[str | None]:
    return [values.family(version) for version in versions]


def _dump(dump: Dump, ruleset: Rules) -> dict[str, Any]:
    return {
        "file": dump.file,
        "format": ruleset.input_format,
        "mode": dump.view.mode.value,
        "rules": ruleset.rules,
        "node": dump.view.node,
        "families": _families(dump.versions),
        "services": len(dump.view.services),
    }


def _state(change: ServiceChange) -> str:
    if not change.is_certain:
        return "unknown"
    if change.b is None:
        return "gone"
    return "added" if change.a is None else "changed"


def _service(change: ServiceChange, endpoints: EndpointTexts) -> str:
    there = change.a or change.b
    assert there is not None
    told = {
        "name": change.name.text,
        "namespace": change.name.namespace,
        "service": change.name.service,
        "port_name": change.name.port,
        "protocol": change.protocol,
        "family": values.family(change.version),
        "change": _state(change),
        "frontends_gone": [values.frontend(frontend) for frontend in change.gone],
        "frontends_added": [values.frontend(frontend) for frontend in change.added],
        "session_affinity": None
        if change.affinity is None
        else {"a": _affinity(change.affinity[0]), "b": _affinity(change.affinity[1])},
        "endpoints_a": _endpoints(change.a),
        "endpoints_b": _endpoints(change.b),
    }
    numbers: dict[Endpoint, int] = {}
    routes = [
        {"routes": [_way(way) for way in each.ways], **_change(each.change, numbers)}
        for each in change.routes
    ]
    named = ",".join(endpoints.of([*numbers]))
    return f'{values.encode(told)[:-1]},"endpoints":[{named}],"routes":{values.encode(routes)}}}'


def _endpoints(service: ServicePort | None) -> int | None:
    return None if service is None else len(service.endpoints)


def _affinity(seconds: int | None) -> dict[str, int] | None:
    return None if seconds is None else {"timeout_seconds": seconds}


def _way(way: RouteIdentity) -> dict[str, Any]:
    network = None if way.network is None else str(way.network)
    return {
        "frontend": values.frontend(way.frontend),
        "source": way.source.value,
        "network": network,
        "but": [str(each) for each in way.but],
    }


def _change(change: Change, numbers: dict[Endpoint, int]) -> dict[str, Any]:
    of = [numbers.setdefault(each.endpoint, len(numbers)) for each in change.endpoints]
    both = [*zip(of, change.endpoints, strict=True)]
    masquerade = [
        {
            "endpoint": numbers.setdefault(each.endpoint, len(numbers)),
            "a": each.a,
            "b": each.b,
        }
        for each in change.masquerade
    ]
    return {
        "endpoints_gone": [at for at, each in both if each.b is None],
        "endpoints_added": [at for at, each in both if each.a is None],
        "shares_moved": [at for at, each in both if each.a is not None and each.b is not None],
        "shares": _shares(of, change.endpoints),
        "each_endpoint_one_of": None
        if change.each is None
        else {"a": change.each[0], "b": change.each[1]},
        "masquerade": masquerade,
        "otherwise": None
        if change.otherwise is None
        else {"a": _ends(change.otherwise[0]), "b": _ends(change.otherwise[1])},
        "unknown": list(change.unknown),
    }


def _shares(of: list[int], changes: Sequence[EndpointChange]) -> dict[str, Any] | None:
    """Return, in each dump, how flows are shared out over the endpoints that differ."""
    if not changes:
        return None
    a = [(at, each.a) for at, each in enumerate(changes) if each.a is not None]
    b = [(at, each.b) for at, each in enumerate(changes) if each.b is not None]
    return {"of": of, "a": _distribution(a, len(of)), "b": _distribution(b, len(of))}


def _distribution(drawn: Sequence[tuple[int, Bounds]], size: int) -> dict[str, Any]:
    places = [at for at, _ in drawn]
    return distribution([share for _, share in drawn], places, size, unresolved=None)


def _ends(ends: Otherwise) -> list[dict[str, Any]]:
    return [{"outcome": kind, "probability": values.bounds(share)} for kind, share in ends]


def _beside(each: NonServiceFlows, rules: values.RuleNumbers) -> dict[str, Any]:
    return {
        "topic": each.topic.value,
        "intended": each.is_intended,
        "certain": each.is_certain,
        "family": values.family(each.version),
        "sources": [source.value for source in each.sources],
        "places": [{"address": str(to.address), "port": to.port} for to in each.places],
        "a": {"ends": _ends(each.a), "rules": rules.of(each.rules_a)},
        "b": {"ends": _ends(each.b), "rules": rules.of(each.rules_b)},
    }
