"""What all documents of the lab have: routes that were left out, and diagnostics."""

from __future__ import annotations

from typing import Any

from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.parsers.measurement import count_of, source_of
from analyzer.reports.lab_answers import LeftOut


def left_out_of(document: dict[str, Any], default: list[Any] | None = None) -> tuple[LeftOut, ...]:
    """Return the routes that a document names as not measured; `default` if that is not in it.

    Raises:
        KeyError, TypeError, ValueError: they are not in the form that the lab writes.
    """
    given = document["left_out"] if default is None else document.get("left_out", default)
    return tuple(
        LeftOut(
            service=str(each["service"]),
            protocol=str(each["protocol"]),
            frontend=str(each["frontend"]),
            source=source_of(each["source"]),
            reason=str(each["reason"]),
        )
        for each in given
    )


def diagnostics_of(
    document: dict[str, Any], default: list[Any] | None = None
) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of a document, as `left_out_of`."""
    given = document["diagnostics"] if default is None else document.get("diagnostics", default)
    return tuple(
        Diagnostic(
            severity=Severity(each["severity"]),
            code=str(each["code"]),
            message=str(each["message"]),
            file=str(each["file"]),
            line=None if each["line"] is None else count_of(each["line"]),
            column=None if each["column"] is None else count_of(each["column"]),
        )
        for each in given
    )
