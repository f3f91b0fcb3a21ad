"""``kubeodds/cluster-sql/1``: the columns, and each row as a list of values."""

from __future__ import annotations

import json
from collections.abc import Iterator

from analyzer.reports import json_values as values
from analyzer.reports.cluster_sql_answer import SqlAnswer

_VERSION = 1


def render(answer: SqlAnswer) -> Iterator[str]:
    """Yield the rows, one by one; values that JSON does not have become strings."""
    return values.document(
        "cluster-sql",
        {
            "columns": values.encode(list(answer.columns)),
            "rows": (json.dumps(list(row), default=str) for row in answer.rows),
        },
        _VERSION,
    )
