"""A document as plain text, for pipes and files, and where rich is not installed."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.model.text import printable
from analyzer.reports.document import Cell, Document, Line, Table, spans

_GAP = "  "


def render_plain(document: Document) -> str:
    """Return the document with its tables aligned, without colour, lines as long as need be."""
    lines: list[str] = []
    for block in document.blocks:
        match block:
            case Line(pieces):
                lines.append(_text(pieces))
            case Table():
                lines += _table(block)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _text(cell: Cell) -> str:
    # Most cells are mere text, and a large table has a million.
    return printable(cell if isinstance(cell, str) else "".join([s.text for s in spans(cell)]))


def _table(table: Table) -> Iterator[str]:
    headings = [column.heading for column in table.columns]
    filled = [(*row, *[""] * (len(headings) - len(row))) for row in table.rows]
    rows = [headings, *([_text(cell) for cell in row] for row in filled)]
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield _GAP.join(
            _padded(text, width, right=column.right)
            for text, width, column in zip(row, widths, table.columns, strict=True)
        )


def _padded(text: str, width: int, *, right: bool) -> str:
    room = width - _width(text) + len(text)
    return text.rjust(room) if right else text.ljust(room)


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
