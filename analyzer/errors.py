"""Exceptions that a caller may want to catch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from analyzer.model.diagnostics import Location

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_MOST_NAMED: Final = 5
#: Characters of a line that are shown whole; of a longer one what stands around the fault.
_LONGEST: Final = 400
_AROUND: Final = 40


class AnalyzerError(Exception):
    """Base of every error this package raises on purpose."""


class InputError(AnalyzerError):
    """Input that is not a dump, or cannot be read; the message says what to do instead."""


class UsageError(AnalyzerError):
    """A request that does not fit the input, for example a dead node that is not in it."""


def suggestion(name: str, known: Iterable[str], short: Mapping[str, str] | None = None) -> str:
    """Return the end of a message about an unknown name: similar names, or all of them.

    `short` has other forms that a name is known by, each with the name that is suggested for it.
    """
    import difflib  # slow to load

    names = sorted(known)
    forms = {**(short or {}), **{each: each for each in names}}
    near = [each for each in forms if each.lower() == name.lower()]
    near = near or difflib.get_close_matches(name, forms, n=3)
    near = near or [each for each in names if name and name in each][:3]
    close = dict.fromkeys(forms[each] for each in near)
    if close:
        return f"; did you mean {' or '.join(close)}?"
    more = ", ..." if names[_MOST_NAMED:] else ""
    return f"; there are {', '.join(names[:_MOST_NAMED])}{more}" if names else ""


class ParseError(AnalyzerError):
    """The input does not follow its format.

    Attributes:
        location: where the line stands.
        line: the whole line.
        span: columns of the offending text, from 0, end excluded.
    """

    def __init__(
        self, message: str, *, location: Location, line: str, span: tuple[int, int]
    ) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.line = line
        self.span = span

    @property
    def column(self) -> int:
        """Where the error begins, from 1."""
        return self.span[0] + 1

    def __str__(self) -> str:
        (start, end), line = self.span, self.line
        if len(line) > _LONGEST:  # JSON may be one line of megabytes
            first = max(0, start - _AROUND)
            end = min(end, start + _AROUND)
            line = line[first : max(start + 1, end) + _AROUND]
            start, end = start - first, end - first
        marker = " " * start + "^" * max(1, end - start)
        return f"{self.location}:{self.column}: {self.message}\n    {line}\n    {marker}"
