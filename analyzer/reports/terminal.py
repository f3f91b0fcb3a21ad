"""A document on a person's terminal, through rich: coloured, and fitted to its width."""

from __future__ import annotations

import io
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from analyzer.model.text import printable
from analyzer.reports.document import Cell, Document, Line, Style, Table, spans

#: Columns that a foldable one keeps at least, and those between two.
_LEAST: Final = 16
_GAP: Final = 3

_STYLES: Final = {
    Style.PLAIN: "",
    Style.STRONG: "bold",
    Style.FAINT: "dim",
    Style.GOOD: "green",
    Style.WARNING: "yellow",
    Style.BAD: "bold red",
}


def render_terminal(document: Document, *, width: int, colour: bool) -> str:
    """Return the document for a terminal of `width` columns."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    for block in document.blocks:
        match block:
            case Line(pieces):
                console.print(_text(pieces))
            case Table():
                console.print(_table(block, width))
    return out.getvalue()


def _text(cell: Cell) -> Text:
    text = Text()
    for span in spans(cell):
        text.append(printable(span.text), _STYLES[span.style])
    return text


def _table(table: Table, width: int) -> RichTable:
    kept = _fitting(table, width)
    shown = RichTable(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for at in kept:
        column = table.columns[at]
        shown.add_column(
            column.heading,
            justify="right" if column.right else "left",
            overflow="fold",
            no_wrap=not column.foldable,
            header_style="bold",
            min_width=_LEAST if column.foldable else None,
        )
    for row in table.rows:
        filled = (*row, *[""] * (len(table.columns) - len(row)))
        shown.add_row(*(_text(filled[at]) for at in kept))
    return shown


def _fitting(table: Table, width: int) -> list[int]:
    """Return the columns to show: all that fit, the spare ones left out first."""
    kept = list(range(len(table.columns)))
    spare = [at for at in kept if table.columns[at].spare]
    spare.sort(key=lambda at: table.columns[at].spare)
    while spare and _width(table, kept) > width:
        kept.remove(spare.pop())
    return kept


def _width(table: Table, kept: list[int]) -> int:
    """Return the least width that a table of these columns takes."""
    widths = []
    for at in kept:
        cells = [_text(row[at]).cell_len for row in table.rows if at < len(row)]
        column = table.columns[at]
        natural = max([len(column.heading), *cells])
        widths.append(min(natural, _LEAST) if column.foldable else natural)
    return sum(widths) + _GAP * (len(kept) - 1)
