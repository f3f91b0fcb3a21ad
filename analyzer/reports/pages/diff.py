"""``diff`` as a page: changes in tables that sort and filter."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.reports.diff_answer import DiffAnswer
from analyzer.reports.diff_text import render as as_text
from analyzer.reports.diff_text import verdict
from analyzer.reports.pages.frame import Page, rendered, until_table


def render(answer: DiffAnswer) -> Iterator[str]:
    """Yield the page in pieces."""
    head, rest = until_table(as_text(answer).blocks)
    # The verdict is near the end of the text, and the first thing that a reader wants.
    first = verdict(answer)
    yield from rendered(
        Page(
            title="What changes from A to B",
            head=[first, *(each for each in head if each != first)],
            rest=[each for each in rest if each != first],
            diagnostics=answer.diagnostics,
        )
    )
