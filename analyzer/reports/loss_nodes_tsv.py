"""``loss`` of several nodes as TSV: one line for each ServicePort on each node.

Columns: the node, then those of ``loss`` of one node, which `loss_tsv` explains. Of a node of which
nothing is judged there is one line with the state ``not-judged`` and no name of a ServicePort; a
ServicePort that only other nodes' dumps show has such a line with its name. Nodes that are dead
have no lines: they send no flows.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.reports import loss_tsv
from analyzer.reports.answers import LossNodesAnswer
from analyzer.reports.tsv import cell


def render(answer: LossNodesAnswer) -> Iterator[str]:
    """Yield the lines, header first."""
    yield "\t".join(("node", *loss_tsv.HEADINGS)) + "\n"
    missing: dict[str, list[tuple[str, ...]]] = {}
    for each in answer.worst:
        for name in each.missing:
            missing.setdefault(name, []).append(loss_tsv.not_judged(each.loss.service))
    for name, of_node in answer.answers.items():
        rows = (*loss_tsv.rows(of_node), *missing.get(name, ()))
        yield "".join("\t".join((cell(name), *row)) + "\n" for row in rows)
    for node in answer.unjudged:
        yield "\t".join((cell(node.name), *loss_tsv.not_judged(None))) + "\n"
