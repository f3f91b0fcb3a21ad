"""What a reader reports about its input without refusing it."""

from __future__ import annotations

import enum

from analyzer.model.value import value


@enum.unique
class Severity(enum.Enum):
    """How much a diagnostic matters to the answer."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@value
class Location:
    """Where something stands in the input; `line` counts from 1.

    Attributes:
        table: that a rule stands in; empty where it was not said, or of something else.
    """

    file: str
    line: int
    table: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@value(kw_only=True)
class Diagnostic:
    """One finding about the input.

    Attributes:
        code: stable, in lower case with hyphens, for programs: ``no-commit``.
        partial: whether something of the input was not understood, so that an answer may
            have to be given as bounds; ``--strict`` turns it into exit status 3.
        line: from 1; None when it is about the whole file.
        column: from 1; None when it is about the whole line.
    """

    severity: Severity
    code: str
    message: str
    file: str
    partial: bool = False
    line: int | None = None
    column: int | None = None


def partial_warning(code: str, message: str, file: str, line: int | None = None) -> Diagnostic:
    """Return the warning that something was not understood, so that an answer may be bounds."""
    return Diagnostic(
        severity=Severity.WARNING, code=code, message=message, file=file, line=line, partial=True
    )
