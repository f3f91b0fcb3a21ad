"""Findings of a reader about its input that do not make it refuse the input."""

from __future__ import annotations

import enum
from collections.abc import Iterable

from analyzer.model.value import value


@enum.unique
class Severity(enum.Enum):
    """How much a diagnostic matters to the answer."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@value
class Location:
    """A place in the input; `line` counts from 1.

    Attributes:
        table: of a rule; empty if not known, or for anything else.
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
        partial: whether something in the input was not understood, so that an answer may
            have to be given as bounds; ``--strict`` turns it into exit status 3.
        line: from 1; None if it is about the whole file.
        column: from 1; None if it is about the whole line.
    """

    severity: Severity
    code: str
    message: str
    file: str
    partial: bool = False
    line: int | None = None
    column: int | None = None


def bounded_work(exceeded: Iterable[str], file: str) -> list[Diagnostic]:
    """Return warnings for the bounds on work that traversals reached (`semantics.effort`)."""
    return [partial_warning("bounded-work", bound, file) for bound in exceeded]


def partial_warning(code: str, message: str, file: str, line: int | None = None) -> Diagnostic:
    """Return the warning that something was not understood, so that an answer may be bounds."""
    return Diagnostic(
        severity=Severity.WARNING, code=code, message=message, file=file, line=line, partial=True
    )
