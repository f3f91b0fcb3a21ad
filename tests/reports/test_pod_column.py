from __future__ import annotations

from analyzer.reports.document import Column
from analyzer.reports.pod_column import with_pods

COLUMNS = (Column("A"), Column("B"))


def test_pods_have_a_column_where_any_is_known() -> None:
    rows = [("1", "2", ""), ("3",), ("4", "5", "ns/pod")]
    found = with_pods(COLUMNS, rows)
    assert [each.heading for each in found.columns] == ["A", "B", "POD"]
    assert found.rows == tuple(rows)


def test_without_any_pod_there_is_no_column() -> None:
    found = with_pods(COLUMNS, [("1", "2", ""), ("3",)])
    assert found.columns == COLUMNS
    assert found.rows == (("1", "2"), ("3",))
