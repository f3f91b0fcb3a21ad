"""``lab run`` and ``lab judge`` as a page: predicted and measured, side by side."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.reports.document import Document
from analyzer.reports.lab_answers import LabAnswer
from analyzer.reports.lab_text import render as as_text
from analyzer.reports.pages.figure import figure
from analyzer.reports.pages.frame import Page, rendered
from analyzer.reports.phrases import count
from analyzer.reports.pictures.measured import measured

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_SAYS: Final = "The mark is the prediction, the dot the measurement; counts within the band agree."
#: Measurements that are drawn, those that disagree first.
_MOST: Final = 40


def render(answer: LabAnswer) -> Iterator[str]:
    """Yield the page in pieces."""
    yield from page_of(answer, as_text(answer))


def page_of(answer: LabAnswer, told: Document) -> Iterator[str]:
    """Yield a page of measurements with a report in words."""
    verdicts = sorted(answer.verdicts, key=lambda verdict: verdict.agrees)[:_MOST]
    word = "agrees" if answer.agrees else "DISAGREES"
    number = count(len(answer.verdicts), "measurement")
    yield from rendered(
        Page(
            title=f"The kernel {word} with the prediction: {number}",
            head=[told.blocks[-1]],
            figures=figure("Predicted and measured", _SAYS, measured(verdicts, alone=False)),
            rest=told.blocks[:-1],
            diagnostics=answer.diagnostics,
        )
    )
