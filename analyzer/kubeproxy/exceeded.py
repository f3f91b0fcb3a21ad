"""What to say where walks met the bounds on their work (`semantics.effort`)."""

from __future__ import annotations

from collections.abc import Iterable

from analyzer.model.diagnostics import Diagnostic, Severity


def bounded(exceeded: Iterable[str], file: str) -> list[Diagnostic]:
    """Return what says that walks met those bounds, and what it means for the answers."""
    return [
        Diagnostic(
            severity=Severity.WARNING,
            code="bounded-work",
            message=bound,
            file=file,
            partial=True,
        )
        for bound in exceeded
    ]
