"""``cluster drift`` as TSV: one line for each difference on each node."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.reports.cluster_drift_answer import DriftAnswer
from analyzer.reports.phrases import proto
from analyzer.reports.tsv import cell


def render(answer: DriftAnswer) -> Iterator[str]:
    """Yield the lines, header first; ServicePorts that are not evaluated have the node ``*``."""
    yield "node\tdrift\tservice_port\tprotocol\twhat\n"
    for each in answer.drifted.findings:
        protocol = proto(each.protocol, each.version)
        told = each.node, each.drift.value, each.service, protocol, each.what
        yield "\t".join(map(cell, told)) + "\n"
    for name in answer.drifted.not_judged:
        yield "\t".join(("*", "not-judged", cell(name), "", "")) + "\n"
