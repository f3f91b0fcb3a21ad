"""Tab-separated tables, for other programs."""

from __future__ import annotations

from analyzer.model.text import printable


def cell(text: str) -> str:
    """Return text that no spreadsheet mistakes for a formula."""
    shown = printable(text)
    return f"'{shown}" if shown[:1] in {"=", "+", "-", "@"} else shown
