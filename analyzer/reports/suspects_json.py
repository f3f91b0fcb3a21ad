"""``kubeodds/suspects/1``: endpoints, with the evidence of conntrack against each."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.failure.suspects import Suspect
from analyzer.reports import json_values as values
from analyzer.reports.flow_answers import SuspectsAnswer

_VERSION = 1


def render(answer: SuspectsAnswer) -> Iterator[str]:
    """Yield the document."""

    def row(each: Suspect) -> str:
        service = each.service
        return values.encode(
            {
                "address": str(each.endpoint.address),
                "port": each.endpoint.port,
                "node": answer.cluster.placement(each.endpoint.address).node,
                "pod": answer.cluster.pods.of(each.endpoint.address, each.endpoint.port),
                "name": service.name.text,
                "protocol": service.protocol,
                "share": {"lower": each.share[0], "upper": each.share[1]},
                "unanswered": each.unanswered,
                "of_unanswered": each.of_unanswered,
                "answered": each.answered,
                "of_answered": each.of_answered,
                "established": each.established,
                "p_value": each.p_value,
                "suspect": each.is_suspect,
                "way_lost": each.way_lost,
                "drawn": each.drawn,
            }
        )

    return values.document(
        "suspects",
        {
            "node": values.encode(answer.view.node),
            "flows": values.encode(answer.flows),
            "flows_to_services": values.encode(answer.owned),
            "error_rate": values.encode(answer.rate),
            "proposal": values.encode(answer.proposal),
            "not_tested": values.encode(
                {"flows": answer.elsewhere[0], "unanswered": answer.elsewhere[1]}
            ),
            "endpoints": map(row, answer.suspects),
            "diagnostics": values.diagnostics(answer.diagnostics),
        },
        _VERSION,
    )
