"""``advise`` as TSV: one line for each Service now, and one for each measure.

Columns: the Service; the measure, or ``now``; how many nodes it survives, and at most; lower and
upper bound of the worst loss and of the mean loss; how many nodes drop its flows whatever fails;
how many nodes the control plane survives; why the measure is refused. Losses are decimal.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.advice.advise import Advice, ServiceCosts
from analyzer.advice.measure import Refused
from analyzer.reports.advise_answer import AdviseAnswer
from analyzer.reports.tsv import cell

_HEADINGS = (
    "service",
    "measure",
    "survives",
    "survives_at_most",
    "worst_lower",
    "worst_upper",
    "mean_lower",
    "mean_upper",
    "dropping_nodes",
    "api_survives",
    "refused",
)


def render(answer: AdviseAnswer) -> Iterator[str]:
    """Yield the lines, header first."""
    yield "\t".join(_HEADINGS) + "\n"
    for advice in answer.advice:
        yield _line(advice, "now", advice.now)
        for each in advice.measures:
            yield _line(advice, each.measure.name, each.outcome)


def _line(advice: Advice, name: str, outcome: ServiceCosts | Refused) -> str:
    if isinstance(outcome, Refused):
        found = [""] * 8 + [outcome.why]
    else:
        score = outcome.score
        numbers = (score.survives, score.at_most, outcome.api)
        survives, at_most, api = ("" if each is None else str(each) for each in numbers)
        worst, mean = score.worst.loss, score.mean_loss
        losses = [repr(float(x)) for x in (worst.lower, worst.upper, mean.lower, mean.upper)]
        found = [survives, at_most, *losses, str(score.dropped), api, ""]
    return "\t".join([cell(advice.name), name, *map(cell, found)]) + "\n"
