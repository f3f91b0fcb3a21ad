"""``kubeodds/loss/1``."""

from __future__ import annotations

from collections import Counter
from typing import Any

from analyzer.failure.loss import ServiceLoss, State
from analyzer.reports import json_values as values
from analyzer.reports.answers import LossAnswer
from analyzer.reports.other_routes import other_routes


def render(answer: LossAnswer) -> str:
    """Return what each ServicePort loses."""
    counts = Counter(loss.state for loss in answer.losses)
    fields = {
        "node": answer.view.node,
        "dead": {
            "nodes": list(answer.dead.nodes),
            "zones": list(answer.dead.zones),
            "endpoints": sorted({str(e.address) for e in answer.dead.endpoints}),
            "uncertain_endpoints": sorted({str(e.address) for e in answer.dead.uncertain}),
        },
        "services": [_service(loss) for loss in answer.losses],
        "totals": {state.value.replace("-", "_"): counts[state] for state in State},
        "not_judged": list(answer.not_judged),
        "cut": bool(answer.view.cut),
        "diagnostics": values.diagnostics(answer.diagnostics),
    }
    return values.document("loss", 1, fields)


def _service(loss: ServiceLoss) -> dict[str, Any]:
    cluster = loss.cluster
    return {
        "name": loss.service.name.text,
        "protocol": loss.service.protocol,
        "loss": None if cluster is None else values.bounds(cluster.loss),
        "no_endpoint": None if cluster is None else values.bounds(cluster.nowhere),
        "endpoints": len(loss.service.endpoints),
        "dead_endpoints": len(loss.dead),
        "state": loss.state.value,
        "routes": [
            {
                **values.route(each.route),
                "loss": values.bounds(each.loss),
                "no_endpoint": values.bounds(each.nowhere),
            }
            for each in other_routes(
                loss.routes,
                lambda each: each.route,
                lambda each: (
                    cluster is not None
                    and (each.loss, each.nowhere) == (cluster.loss, cluster.nowhere)
                ),
            )
        ],
    }
