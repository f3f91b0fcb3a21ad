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
                console.print(_table(block))
    return out.getvalue()


def _text(cell: Cell) -> Text:
    text = Text()
    for span in spans(cell):
        text.append(printable(span.text), _STYLES[span.style])
    return text


def _table(table: Table) -> RichTable:
    shown = RichTable(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in table.columns:
        shown.add_column(
            column.heading,
            justify="right" if column.right else "left",
            overflow="fold",
            header_style="bold",
        )
    for row in table.rows:
        shown.add_row(*(_text(cell) for cell in row))
    return shown
