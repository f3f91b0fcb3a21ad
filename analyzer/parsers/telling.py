"""Diagnostics of readers about rows that they could not parse."""

from __future__ import annotations

from analyzer.model.diagnostics import Diagnostic, Severity


class Telling:
    """A reader of one file that collects diagnostics, by line."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._diagnostics: list[Diagnostic] = []

    def _warn(self, code: str, message: str, line: int) -> None:
        """Report what may make the answer incomplete."""
        self._diagnose(Severity.WARNING, code, message, line)

    def _note(self, code: str, message: str, line: int) -> None:
        """Report what does not affect the answer."""
        self._diagnose(Severity.INFO, code, message, line)

    def _diagnose(self, severity: Severity, code: str, message: str, line: int) -> None:
        self._diagnostics.append(
            Diagnostic(
                severity=severity,
                code=code,
                message=message,
                file=self._file,
                line=line,
                partial=severity is not Severity.INFO,
            )
        )
