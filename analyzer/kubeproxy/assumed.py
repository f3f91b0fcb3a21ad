"""What the routes of Services rest on besides the dump, reported only where it matters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from analyzer.model.diagnostics import Diagnostic, Severity

#: The code of diagnostics about assumptions.
ASSUMED = "assumed"


def rests_on(used: Iterable[str], values: Mapping[str, str], file: str) -> list[Diagnostic]:
    """Return diagnostics for results that used the assumptions of these names."""
    names = set(used)
    if not names:
        return []
    from analyzer.semantics.assumed import told  # needed for few dumps

    return [
        Diagnostic(severity=Severity.INFO, code=ASSUMED, message=sentence, file=file)
        for sentence in told(names, values)
    ]
