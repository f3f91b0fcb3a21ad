"""Diagnostics for traversals that reached their bounds on work (`semantics.effort`)."""

from __future__ import annotations

from collections.abc import Iterable

from analyzer.model.diagnostics import Diagnostic, partial_warning


def bounded(exceeded: Iterable[str], file: str) -> list[Diagnostic]:
    """Return diagnostics for the bounds that were reached, with what it means for the results."""
    return [partial_warning("bounded-work", bound, file) for bound in exceeded]
