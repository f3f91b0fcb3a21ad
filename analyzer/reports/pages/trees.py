"""Icicles in a page: pictures that scripts make zoomable and searchable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from analyzer.reports.json_values import encode
from analyzer.reports.pages.blocks import escape
from analyzer.reports.pictures.cells import TreeCell
from analyzer.reports.pictures.icicle import icicle


def trees(found: Sequence[TreeCell]) -> tuple[Iterator[str], Mapping[str, Iterable[str]]]:
    """Return the figures of trees, and the data that scripts draw them from."""
    return _figures(found), {"trees": _data(found)}


def _figures(found: Sequence[TreeCell]) -> Iterator[str]:
    for at, root in enumerate(found):
        yield f'<section class="tree" aria-labelledby="tree-{at}-title">\n'
        yield f'<h2 id="tree-{at}-title">{escape(root.title)}</h2>\n'
        yield f'<div class="icicle" data-tree="{at}" hidden></div>\n<div class="replaced wide" '
        yield f'tabindex="0" role="group" aria-label="Tree {at + 1}">\n'
        yield from icicle(root, alone=False)
        yield "</div>\n</section>\n"


def _data(found: Sequence[TreeCell]) -> Iterator[str]:
    before = "["
    for root in found:
        yield before + encode(root.encoded())
        before = ",\n"
    yield "]" if found else "[]"
