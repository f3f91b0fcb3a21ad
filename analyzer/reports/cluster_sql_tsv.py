"""``cluster sql`` as TSV: a header with the columns, then one line for each row."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.reports.cluster_sql_answer import SqlAnswer, shown
from analyzer.reports.tsv import cell


def render(answer: SqlAnswer) -> Iterator[str]:
    """Yield the lines, header first."""
    yield "\t".join(map(cell, answer.columns)) + "\n"
    for row in answer.rows:
        told = (
            shown(each) if isinstance(each, (int, float)) else cell(shown(each)) for each in row
        )
        yield "\t".join(told) + "\n"
