"""Findings of invariants, and how many of them are shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.model.value import replace, value

#: Most findings of one code that are shown one by one; of more, the first and their number.
_TOLD: Final = 3


@value(kw_only=True)
class Finding:
    """One broken invariant.

    Attributes:
        message: which traffic it affects, and why it matters.
        line: of the rule, from 1; None if a rule is missing.
        partial: whether results may have to be bounds because of it.
    """

    code: str
    message: str
    line: int | None = None
    partial: bool = False


@value
class Checked:
    """All findings: as diagnostics, those of one kind together, and how many there are."""

    diagnostics: tuple[Diagnostic, ...]
    findings: int


def gathered(findings: Iterable[Finding], file: str) -> Checked:
    """Return findings in the order of their lines, many of one code as one diagnostic."""
    by_code: dict[str, list[Finding]] = {}
    for finding in findings:
        by_code.setdefault(finding.code, []).append(finding)
    told = [each for group in by_code.values() for each in _told(group)]
    told.sort(key=lambda finding: finding.line or 0)
    return Checked(
        tuple(
            Diagnostic(
                severity=Severity.WARNING,
                code=each.code,
                message=each.message,
                file=file,
                partial=each.partial,
                line=each.line,
            )
            for each in told
        ),
        sum(map(len, by_code.values())),
    )


def _told(group: list[Finding]) -> Iterator[Finding]:
    group = sorted(group, key=lambda finding: finding.line or 0)
    if len(group) <= _TOLD:
        yield from group
    else:
        yield replace(group[0], message=f"{group[0].message} (and {len(group) - 1} more like it)")
