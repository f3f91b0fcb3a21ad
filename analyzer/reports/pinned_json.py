"""``kubeodds/pinned/1``: flows pinned to endpoints that do not answer."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.failure.pinned import Pinned
from analyzer.reports import json_values as values
from analyzer.reports.flow_answers import PinnedAnswer

_VERSION = 1


def render(answer: PinnedAnswer) -> Iterator[str]:
    """Yield the document."""

    def row(each: Pinned) -> str:
        return values.encode(
            {
                "name": each.service.name.text,
                "protocol": each.service.protocol,
                "frontend": each.frontend.kind.value,
                "address": str(each.destination.address),
                "port": each.destination.port,
                "endpoint": {
                    "address": str(each.endpoint.address),
                    "port": each.endpoint.port,
                    "node": answer.cluster.placement(each.endpoint.address).node,
                    "pod": answer.cluster.pods.of(each.endpoint.address, each.endpoint.port),
                },
                "why": each.why.value,
                "owner": each.owner,
                "flows": each.flows,
                "unanswered": each.unanswered,
                "seconds": each.seconds,
                "command": each.command,
            }
        )

    dead = answer.dead
    return values.document(
        "pinned",
        {
            "node": values.encode(answer.view.node),
            "dead": values.encode(
                {
                    "nodes": list(dead.nodes),
                    "zones": list(dead.zones),
                    "endpoints": list(dead.named),
                }
            ),
            "flows": values.encode(answer.flows),
            "flows_to_services": values.encode(answer.owned),
            "pinned": map(row, answer.pinned),
            "wrong_doors": (
                values.encode({"address": str(e.address), "port": e.port, "owner": owner})
                for e, owner in answer.foreign.items()
            ),
            "diagnostics": values.diagnostics(answer.diagnostics),
        },
        _VERSION,
    )
