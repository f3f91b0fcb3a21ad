"""A document on a person's terminal, through rich: coloured, and fitted to its width."""

from __future__ import annotations

import io
from collections.abc import Iterator
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
#: By how much deeper a line of a table that does not fit begins for each column before it.
_STEP: Final = 2

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
                kept = _fitting(block, width)
                if _width(block, kept) <= width:
                    console.print(_table(block, kept))
                else:
                    for line in _stacked(block, width):
                        console.print(line, overflow="fold")
    return out.getvalue()


def _text(cell: Cell) -> Text:
    text = Text()
    for span in spans(cell):
        text.append(printable(span.text), _STYLES[span.style])
    return text


def _stacked(table: Table, width: int) -> Iterator[Text]:
    """Give the rows of a table that is too wide as lines, so that no address is cut.

    A row goes on in another line before columns that begin one; a line stands the deeper the more
    columns are before it, so that what is left empty stands for what is above.
    """
    begins = [at for at, column in enumerate(table.columns) if column.begins]
    for row in table.rows:
        line = Text()
        for first, behind in zip([0, *begins], [*begins, len(row)], strict=True):
            told = [text for cell in row[first:behind] if (text := _text(cell)).cell_len]
            part = Text(" " * _STEP).join(told)
            if not told:
                continue
            if line.cell_len and line.cell_len + _STEP + part.cell_len <= width:
                line = line + Text(" " * _STEP) + part
                continue
            if line.cell_len:
                yield line
            line = Text(" " * (first * _STEP)) + part
        if line.cell_len:
            yield line


def _table(table: Table, kept: list[int]) -> RichTable:
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
