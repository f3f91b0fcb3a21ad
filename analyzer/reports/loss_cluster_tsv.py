"""``loss`` on every node as TSV: one line for each ServicePort and set of equal nodes.

Columns: the nodes, with commas between, or ``*`` for every live node; the mean over all of
those, at least and at most; then those of ``loss`` of one node, which `loss_tsv` explains. What is
not judged has a line with the state ``not-judged``.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.reports import loss_tsv
from analyzer.reports.cluster_answer import LossClusterAnswer
from analyzer.reports.tsv import cell


def render(answer: LossClusterAnswer) -> Iterator[str]:
    """Yield the lines, header first."""
    yield "\t".join(("nodes", "mean_lower", "mean_upper", *loss_tsv.HEADINGS)) + "\n"
    for each in answer.losses:
        mean = [repr(float(share)) for share in each.mean]
        for at in each.at:
            every = len(at.nodes) == len(answer.alive)
            names = "*" if every else ",".join(sorted(at.nodes))
            yield "\t".join((cell(names), *mean, *loss_tsv.cells(at.loss))) + "\n"
    for name in answer.not_judged:
        empty = loss_tsv.not_judged(None)[1:]
        yield "\t".join(("*", "0.0", "1.0", cell(name), *empty)) + "\n"
