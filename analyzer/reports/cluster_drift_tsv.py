"""``cluster drift`` as TSV: one line for each difference on each node."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.reports import json_values as values
from analyzer.reports.cluster_drift_answer import DriftAnswer
from analyzer.reports.tsv import cell


def render(answer: DriftAnswer) -> Iterator[str]:
    """Yield the lines, header first; ServicePorts that are not evaluated have the node ``*``."""
    yield "node\tdrift\tservice_port\tprotocol\twhat\tfamily\n"
    for each in answer.drifted.findings:
        told = each.node, each.drift.value, each.service, each.protocol, each.what
        family = values.family(each.version) or ""
        yield "\t".join(map(cell, (*told, family))) + "\n"
    for name in answer.drifted.not_judged:
        yield "\t".join(("*", "not-judged", cell(name), "", "", "")) + "\n"
