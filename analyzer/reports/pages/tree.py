"""``tree`` as a page: each route as an icicle from the hook to the endpoints."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from analyzer.reports.answers import TreeAnswer
from analyzer.reports.pages.frame import Page, rendered
from analyzer.reports.pages.trees import trees
from analyzer.reports.phrases import at_node, listed
from analyzer.reports.pictures.cells import TreeCell, cells
from analyzer.reports.pictures.route import route_title
from analyzer.reports.tree_text import end_of
from analyzer.reports.tree_text import render as as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Of a draw; there may be five thousand.
_MOST: Final = 1_000


def render(answer: TreeAnswer) -> Iterator[str]:
    """Yield the page in pieces."""
    end = partial(end_of, answer)
    found: list[TreeCell] = [
        cells(route_title(service, route), tree, end, _MOST)
        for service, route, tree in answer.trees
    ]
    names = list(dict.fromkeys(service.name.text for service, _, _ in answer.trees))
    figures, data = trees(found)
    yield from rendered(
        Page(
            title=f"Where new flows to {listed(names)} go{at_node(answer.view)}",
            head=(),
            figures=figures,
            rest=as_text(answer).blocks,
            diagnostics=answer.diagnostics,
            data=data,
        )
    )
