"""SQL queries of the user to the tables of a store: one read-only SELECT.

Theory of operation: DuckDB accepts a WITH that copies into files as part of a SELECT, and could
write wherever it may read. It refuses such a WITH inside another query, so each query is explained
inside one before it is run. One function runs a query given as its argument, and is refused.
"""

from __future__ import annotations

from analyzer.cluster.folder import engine
from analyzer.cluster.tables import TABLES
from analyzer.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from analyzer.cluster.content import TableRow

_ONE_SELECT: Final = "cluster sql: it answers one SELECT, and changes nothing"
#: What DuckDB says of a WITH that writes and stands within another question.
_WRITES: Final = "must be at the top level"
#: Runs a query that EXPLAIN does not show.
_HIDES: Final = "json_execute_serialized_sql"
#: A type that DuckDB only returns as text, for lack of a module.
_ZONED: Final = "WITH TIME ZONE"


def answer(db: Any, folder: str, sql: str) -> tuple[list[str], list[TableRow]]:
    """Return the columns and rows of a query to the tables in a folder.

    `db` is a connection that has the views over them; it reads no other file from then on.

    Raises:
        UsageError: the question is none.
    """
    duckdb = engine()
    try:
        kinds = [each.type for each in db.extract_statements(sql)]
        if kinds != [duckdb.StatementType.SELECT]:
            raise UsageError(_ONE_SELECT)
        tables = ", ".join(f"'{folder}/{table}/'" for table in TABLES)
        db.execute(f"SET allowed_directories = [{tables}]")
        db.execute("SET enable_external_access = false; SET lock_configuration = true")
        within = sql.replace("'", "''")
        told = db.execute(f"EXPLAIN (FORMAT json) FROM query('{within}')").fetchall()
        if _HIDES in str(told).lower():
            raise UsageError(f"cluster sql: {_HIDES} is not allowed")
        found = db.execute(sql)
        columns = [(each[0], str(each[1])) for each in found.description or ()]
        for name, kind in columns:
            if _ZONED in kind:
                says = "has a time zone; select it as text, with ::VARCHAR"
                raise UsageError(f"cluster sql: {name} {says}")
        return [name for name, _ in columns], found.fetchall()
    except duckdb.Error as error:
        says = str(error)
        if _WRITES in says:
            raise UsageError(_ONE_SELECT) from None
        # After that it quotes the query as it was wrapped above.
        says = " ".join(says.partition("\n\nLINE ")[0].split())
        raise UsageError(f"cluster sql: {says}") from None
