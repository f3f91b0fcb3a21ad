"""``diff`` as a page: what changes, in tables that sort and filter."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.reports.answers import DiffAnswer
from analyzer.reports.diff_text import render as as_text
from analyzer.reports.pages.frame import Page, rendered, until_table


def render(answer: DiffAnswer) -> Iterator[str]:
    """Give the page in pieces."""
    blocks = as_text(answer).blocks
    head, rest = until_table(blocks)
    yield from rendered(
        Page(
            title="What changes from A to B",
            # The verdict is the last line of the text, and the first thing that a reader wants.
            head=[blocks[-1], *(head if rest else head[:-1])],
            rest=rest[:-1] if rest else (),
            diagnostics=answer.diagnostics,
        )
    )
