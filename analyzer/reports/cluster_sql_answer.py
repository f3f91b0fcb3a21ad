"""The rows that a SQL query to a store returned."""

from __future__ import annotations

from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@value
class SqlAnswer:
    """Columns by name, and rows in their order; a value may be a number, text, a list, or None."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def shown(value: object) -> str:
    """Return a value as tables show it."""
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value)
    return ",".join(map(shown, value)) if isinstance(value, list) else str(value)
