"""``trace`` as a page: all paths of one packet as an icicle."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from analyzer.reports.answers import TraceAnswer
from analyzer.reports.pages.frame import Page, rendered, until_table
from analyzer.reports.pages.trees import trees
from analyzer.reports.pictures.cells import cells
from analyzer.reports.trace_text import asked_of, end_of
from analyzer.reports.trace_text import render as as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Of a draw; there may be five thousand.
_MOST: Final = 1_000


def render(answer: TraceAnswer) -> Iterator[str]:
    """Yield the page in pieces."""
    asked = asked_of(answer.packet)
    root = cells(asked, answer.tree, partial(end_of, answer), _MOST)
    head, rest = until_table(as_text(answer).blocks)
    figures, data = trees([root])
    yield from rendered(
        Page(
            title=f"Where a packet goes: {asked}",
            head=head,
            figures=figures,
            rest=rest,
            data=data,
            diagnostics=answer.diagnostics,
        )
    )
