"""``cluster sql`` for people: rows as a table."""

from __future__ import annotations

from analyzer.reports.cluster_sql_answer import SqlAnswer, shown
from analyzer.reports.document import Column, Document, TextTable


def render(answer: SqlAnswer) -> Document:
    """Return a table of all rows."""
    numbers = {
        at
        for at in range(len(answer.columns))
        if all(isinstance(row[at], (int, float)) or row[at] is None for row in answer.rows)
    }
    columns = [
        Column(name, right=at in numbers, shortens=at not in numbers)
        for at, name in enumerate(answer.columns)
    ]
    rows = tuple(tuple(map(shown, row)) for row in answer.rows)
    return Document([TextTable(tuple(columns), rows)])
