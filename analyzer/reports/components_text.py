"""``whatif --components`` for people: a table, with the source of each line below."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.outage.components import Component, Effect
from analyzer.reports.document import Block, Column, Document, Line, Span, Style, TextTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_COLUMNS: Final = (
    Column("", spare=2),
    Column("WHAT", foldable=True),
    Column("WHY", foldable=True),
    Column("SOURCE", right=True),
)


def render(components: Sequence[Component]) -> Document:
    """Return for each component what still works and what stops, with numbered sources."""
    sources: dict[str, int] = {}
    blocks: list[Block] = []
    for each in components:
        rows = tuple(
            (Span(label, style), effect.what, effect.why, _numbers(effect, sources))
            for label, style, effect in (
                ("still works", Style.GOOD, each.works),
                ("stops", Style.BAD, each.stops),
                ("from when", Style.WARNING, each.since),
            )
        )
        heading = (Span(f"{each.name} down", Style.STRONG), f": {each.down}")
        blocks += [Line(heading), TextTable(_COLUMNS, rows), Line()]
    blocks.append(Line((Span("Sources, in kubernetes/kubernetes where no other is named:"),)))
    blocks += [Line((Span(f"  [{n}] {text}", Style.FAINT),)) for text, n in sources.items()]
    return Document(blocks)


def _numbers(effect: Effect, sources: dict[str, int]) -> str:
    """Return the numbers of an effect's sources, each new one with the next number."""
    named = effect.source.split("; ")
    return "".join(f"[{sources.setdefault(each, len(sources) + 1)}]" for each in named)
