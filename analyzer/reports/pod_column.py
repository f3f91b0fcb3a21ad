"""The column of pods, in tables of endpoints: only where the objects name any."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from analyzer.reports.document import Cell, Column, TextTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_POD: Final = Column("POD", shortens=True, spare=1)


def with_pods(columns: Sequence[Column], rows: Iterable[tuple[Cell, ...]]) -> TextTable:
    """Return a table of rows which may have a cell more than `columns`: the pod, or nothing."""
    told, number = tuple(rows), len(columns)
    if any(cell != "" for row in told for cell in row[number:]):
        return TextTable((*columns, _POD), told)
    return TextTable(tuple(columns), tuple(row[:number] for row in told))
