"""``timeline`` as a page: what ServicePorts lose over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from analyzer.reports.answers import TimelineAnswer
from analyzer.reports.document import Block, Line
from analyzer.reports.pages.figure import figure
from analyzer.reports.pages.frame import Page, rendered, until_table
from analyzer.reports.phrases import at_node
from analyzer.reports.pictures.curves import curves
from analyzer.reports.timeline_text import in_order
from analyzer.reports.timeline_text import render as as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_SAYS: Final = (
    "Of new flows: solid is certainly lost, faint is possibly lost; a dotted line marks where "
    "something happens for the first time."
)
#: ServicePorts that are drawn; with --all each.
_MOST: Final = 20


def render(answer: TimelineAnswer) -> Iterator[str]:
    """Yield the page in pieces."""
    head, rest = until_table(as_text(answer).blocks)
    lost = in_order(answer)
    shown = lost if answer.every else lost[:_MOST]
    drawn = curves(shown, answer.scenario.events, alone=False)
    yield from rendered(
        Page(
            title=f"An outage over time{at_node(answer.view)}",
            head=head,
            figures=figure("What is lost when", _SAYS, drawn),
            rest=[*_without_letters(rest)],
            diagnostics=answer.diagnostics,
        )
    )


def _without_letters(blocks: Sequence[Block]) -> Iterator[Block]:
    """Yield blocks without the picture in letters, and its title: here it is one of lines."""
    for each, follows in zip_longest(blocks, blocks[1:]):
        if not any(isinstance(line, Line) and line.whole for line in (each, follows)):
            yield each
