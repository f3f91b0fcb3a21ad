"""``gate`` as TSV: one line for each Service and kind of failure.

Columns: the Service; the kind of failure; lower and upper bound of the worst loss; whether it is
proven that no placement is worse; the loss at the expected placement; how many nodes it survives at
the placement on fewest nodes; the nodes of the worst placement with their pods; the verdict; the
file and line of the Service; the numbers of replicas at which it is so, of workloads that an
autoscaler scales.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.failure.whatif import FailureKind
from analyzer.gate.evaluation import EvaluatedService, WorstCase
from analyzer.reports.gate_answer import GateAnswer, replicas_of
from analyzer.reports.tsv import cell

_HEADINGS = (
    "service",
    "failure",
    "loss",
    "loss_at_most",
    "proven",
    "expected",
    "survives",
    "pods",
    "verdict",
    "place",
    "replicas",
)


def render(answer: GateAnswer) -> Iterator[str]:
    """Yield the header and the lines."""
    yield "\t".join(_HEADINGS) + "\n"
    for evaluated in answer.evaluated:
        for found in evaluated.worst:
            assert found.kind is not None  # of a failure
            yield _row(answer, evaluated, found, found.kind)


def _row(
    answer: GateAnswer, evaluated: EvaluatedService, found: WorstCase, kind: FailureKind
) -> str:
    lost = found.case.found is None
    loss = found.case.loss(kind)
    most = 1.0 if lost else float(loss.upper if found.most is None else found.most)
    places = found.case.places(answer.problem)
    broken = evaluated.pending or any(each.found is found for each in evaluated.violations)
    cells = (
        evaluated.service.name,
        kind.value,
        f"{1.0 if lost else float(loss.lower):.9g}",
        f"{most:.9g}",
        "yes" if found.is_proven else "no",
        f"{float(evaluated.expected.loss(kind).upper):.9g}",
        str(evaluated.fewest.case.survives),
        ",".join(f"{name}={number}" for name, number in places),
        "fails" if broken else "passes" if answer.thresholds.are_any else "",
        str(evaluated.service.manifest.place),
        ",".join(f"{w.name}={n}" for w, n in replicas_of(answer, found.case)),
    )
    return "\t".join(map(cell, cells)) + "\n"
