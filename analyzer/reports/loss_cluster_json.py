"""``kubeodds/loss-cluster/1``: what each ServicePort loses on each node, from objects alone.

``at`` has an entry for all nodes that lose the same; ``nodes`` is null where that is every node
that lives. ``worst_loss`` and ``mean_loss`` are over those. ``state`` and ``totals`` are of the
worst node; ``silenced_everywhere`` is of all living nodes, as ``silenced`` of `whatif`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from analyzer.failure.loss import LossState, ServiceLoss
from analyzer.failure.loss_at_every_node import LossAtEveryNode
from analyzer.reports import json_values as values
from analyzer.reports import loss_json
from analyzer.reports.cluster_answer import LossClusterAnswer
from analyzer.reports.predicted_json import dumps, prediction
from analyzer.reports.route_networks import network_fields
from analyzer.reports.whatif_json import rounded

_VERSION = 1


def render(answer: LossClusterAnswer) -> Iterator[str]:
    """Yield what each ServicePort loses, one by one."""
    counts = Counter(each.worst.state for each in answer.losses)
    return values.document(
        "loss-cluster",
        {
            "vantage": values.encode(list(answer.alive)),
            "left_out": values.encode(list(answer.gone)),
            "dead": values.encode(loss_json.dead(answer.dead)),
            "services": (_service(each, len(answer.alive)) for each in answer.losses),
            "totals": values.encode({state.value: counts[state] for state in LossState}),
            "not_judged": map(values.encode, answer.not_judged),
            "prediction": values.encode(prediction(answer.prediction)),
            "dumps": values.encode(dumps(answer.prediction)),
            "diagnostics": values.diagnostics(answer.diagnostics),
        },
        _VERSION,
    )


def _service(each: LossAtEveryNode, alive: int) -> str:
    lower, upper = each.mean
    return values.encode(
        {
            **values.name(each.worst.service),
            "state": each.worst.state.value,
            "silenced_everywhere": each.is_silenced_everywhere,
            "worst_loss": _worst(each.worst),
            "nodes": _names(each.worst_at, alive),
            "mean_loss": {"lower": float(lower), "upper": float(upper), "nodes": each.nodes},
            "at": [
                {
                    "nodes": _names(at.nodes, alive),
                    "state": at.loss.state.value,
                    "worst_loss": _worst(at.loss),
                    "endpoints": len(at.loss.service.endpoints),
                    "dead_endpoints": len(at.loss.dead),
                    "refused": any(how for _, how in at.loss.service.refusals),
                }
                for at in each.at
            ],
        }
    )


def _names(nodes: frozenset[str], alive: int) -> list[str] | None:
    return None if len(nodes) == alive else sorted(nodes)


def _worst(loss: ServiceLoss) -> dict[str, Any] | None:
    worst = loss.worst_route
    if worst is None:
        return None
    route = worst.route
    return {
        "lower": values.probability(rounded(worst.loss.lower)),
        "upper": values.probability(rounded(worst.loss.upper, up=True)),
        "frontend": values.frontend(route.frontend),
        "source": route.source.value,
        **network_fields(route),
    }
