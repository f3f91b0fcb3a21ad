"""A picture in a page, with its description in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from analyzer.reports.pages.blocks import escape


def figure(title: str, says: str, inside: Iterable[str]) -> Iterator[str]:
    """Yield a section with one picture."""
    yield f'<section class="picture"><h2>{escape(title)}</h2>\n<figure>'
    yield f"<figcaption>{escape(says)}</figcaption>\n"
    yield f'<div class="wide" tabindex="0" role="group" aria-label="{escape(title)}">\n'
    yield from inside
    yield "</div></figure></section>\n"
