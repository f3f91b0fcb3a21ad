"""``tree`` as SVG, for documents: an icicle of each route, one below the other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from analyzer.reports.answers import TreeAnswer
from analyzer.reports.pictures.cells import cells
from analyzer.reports.pictures.icicle import icicles
from analyzer.reports.pictures.route import route_title
from analyzer.reports.tree_text import end_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Of a draw, so that each has a name that can be read; with --all as many as there are.
_MOST: Final = 40
_EVERY: Final = 1_000


def render(answer: TreeAnswer) -> Iterator[str]:
    """Yield the picture in pieces."""
    end = partial(end_of, answer)
    most = _EVERY if answer.every else _MOST
    yield from icicles(
        [
            cells(route_title(service, route), tree, end, most)
            for service, route, tree in answer.trees
        ]
    )
