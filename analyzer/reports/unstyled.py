"""A report as plain text, for pipes and files, and if rich is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from analyzer.model.text import printable
from analyzer.reports.document import Cell, Document, Line, Span, TextTable, spans

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
    # Column by column: what a cell takes is a call or two, and there are many.
    headings = [column.heading for column in table.columns]
    padded = [
        _padded([*map(_text, cells)], right=column.right)
        for column, cells in zip(
            table.columns, zip_longest(headings, *table.rows, fillvalue=""), strict=True
        )
    ]
    yield from map(_GAP.join, zip(*padded, strict=True))


def _padded(texts: list[str], *, right: bool) -> list[str]:
    """Return the texts of a column made printable, each as wide as the widest."""
    adjust = str.rjust if right else str.ljust
    # A large table has a million of them, and hardly any is odd: so all are looked at together.
    together = "".join(texts)
    if together.isascii() and together.isprintable():
        width = max(map(len, texts))
        return [adjust(text, width) for text in texts]
    texts = [*map(printable, texts)]
    widths = [*map(_width, texts)]
    width = max(widths)
    return [adjust(text, width - own + len(text)) for text, own in zip(texts, widths, strict=True)]


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
