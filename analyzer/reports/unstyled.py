"""A report as plain text, for pipes and files, and if rich is not installed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from analyzer.model.text import printable
from analyzer.reports.document import Cell, Column, Document, Line, Span, TextTable, spans

_GAP = "  "


def render_unstyled(document: Document) -> str:
    """Return the document with aligned tables, without colour or line wrapping."""
    lines: list[str] = []
    for block in document.blocks:
        match block:
            case Line(pieces, _):
                lines.append(printable(_text(pieces)))
            case TextTable():
                lines += _table(block)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _text(cell: Cell) -> str:
    if isinstance(cell, str):
        return cell
    return cell.text if isinstance(cell, Span) else "".join([s.text for s in spans(cell)])


def _table(table: TextTable) -> Iterator[str]:
    # Column by column, then one format for all rows: there may be a million cells.
    headings = [column.heading for column in table.columns]
    formats: list[str] = []
    columns: list[Sequence[str]] = []
    for column, cells in zip(
        table.columns, zip_longest(headings, *table.rows, fillvalue=""), strict=True
    ):
        texts, form = _padded([c if isinstance(c, str) else _text(c) for c in cells], column)
        formats.append(form)
        columns.append(texts)
    yield from map(_GAP.join(formats).__mod__, zip(*columns, strict=True))


def _padded(texts: list[str], column: Column) -> tuple[Sequence[str], str]:
    """Return the texts of a column made printable, and the format that makes them of one width."""
    # Hardly any is odd: so all are looked at together.
    together = "".join(texts)
    if together.isascii() and together.isprintable():
        return texts, f"%{'' if column.right else '-'}{max(map(len, texts))}s"
    adjust = str.rjust if column.right else str.ljust
    texts = [*map(printable, texts)]
    widths = [*map(_width, texts)]
    width = max(widths)
    found = [adjust(t, width - own + len(t)) for t, own in zip(texts, widths, strict=True)]
    return found, "%s"


def _width(text: str) -> int:
    """Return the columns that `text` takes: East Asian wide characters take two, marks none."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0
        if unicodedata.category(c) in {"Mn", "Me"}
        else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )
