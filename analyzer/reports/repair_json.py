"""``kubeodds/repair/1``: a change to one node's rules, and its effect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.repair.witness import Repaired
from analyzer.reports import json_values as values
from analyzer.reports.freshness import freshness_json
from analyzer.reports.repair_answer import RepairAnswer
from analyzer.reports.route_networks import network_fields

_VERSION = 1


def render(answer: RepairAnswer) -> Iterator[str]:
    """Yield the document."""
    dead = answer.dead
    return values.document(
        "repair",
        {
            "node": values.encode(answer.view.node),
            "dead": values.encode(
                {
                    "nodes": list(dead.nodes),
                    "zones": list(dead.zones),
                    "endpoints": list(dead.named),
                }
            ),
            "freshness": values.encode(freshness_json(answer.freshness)),
            "patches": (
                values.encode(
                    {
                        "family": each.family,
                        "program": each.program,
                        "apply": each.apply,
                        "undo": each.undo,
                    }
                )
                for each in answer.patches
            ),
            "conntrack": map(values.encode, answer.pinned),
            "services": map(_service, answer.services),
            "left_alone": map(values.encode, answer.alone),
            "problems": map(values.encode, answer.problems),
            "unplaced_endpoints": values.encode(answer.unplaced),
            "diagnostics": values.diagnostics(answer.diagnostics),
        },
        _VERSION,
    )


def _service(each: Repaired) -> str:
    service = each.before.service
    found: dict[str, Any] = {
        "name": service.name.text,
        "protocol": service.protocol,
        "family": {4: "ip", 6: "ip6"}.get(service.version or 0),
        "fate": each.fate.value,
        "dead_endpoints": [str(end) for end in each.before.dead],
        "routes": [
            {
                "frontend": {
                    "kind": loss.route.frontend.kind.value,
                    "address": None
                    if loss.route.frontend.address is None
                    else str(loss.route.frontend.address),
                    "port": loss.route.frontend.port,
                },
                "source": loss.route.source.value,
                **network_fields(loss.route),
                "loss_before": {
                    "lower": values.probability(loss.on_dead.lower),
                    "upper": values.probability(loss.on_dead.upper),
                },
                "loss_after": None
                if after is None
                else {
                    "lower": values.probability(after.loss.lower),
                    "upper": values.probability(after.loss.upper),
                },
                "fate": fate.value,
            }
            for (loss, fate), after in zip(each.routes, each.after, strict=True)
        ],
    }
    return values.encode(found)
