"""What a verb prints, where, and with which exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence

from analyzer.errors import AnalyzerError, ParseError
from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.model.text import printable
from analyzer.reports.renderers import renderer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import SimpleNamespace
    from typing import Final

    from analyzer.reports.document import Document

DONE: Final = 0
NO: Final = 1
BAD_INPUT: Final = 2
PARTLY: Final = 3
INTERRUPTED: Final = 130


def complain(error: AnalyzerError) -> None:
    """Print an error as compilers do, with its location if it has one."""
    if isinstance(error, ParseError):
        for line in str(error).split("\n"):
            say(line)
    else:
        say(f"kubeodds: {error}")


def say(text: str) -> None:
    """Print a line to stderr, with control characters escaped."""
    print(printable(text), file=sys.stderr)  # noqa: T201  # the one place that does


def finish(
    options: SimpleNamespace,
    verb: str,
    answer: object,
    diagnostics: Sequence[Diagnostic],
    *,
    no: bool,
) -> int:
    """Show the answer, print all notes, and return the exit status."""
    for each in diagnostics:
        if each.severity is not Severity.INFO or options.verbose:
            say(_diagnostic(each))
    rendered = renderer(verb, options.format)(answer)
    show(rendered, options)
    if options.strict and any(each.partial for each in diagnostics):
        return PARTLY
    return NO if no else DONE


def _diagnostic(each: Diagnostic) -> str:
    place = "".join(f":{at}" for at in (each.line, each.column) if at is not None)
    return f"{each.file}{place}: {each.severity.value}: {each.message}"


def show(rendered: Document | str | Iterator[str], options: SimpleNamespace) -> None:
    """Write a report where the options say: fitted and coloured only for a terminal.

    Raises:
        OSError: it cannot be written; the error names the file.
    """
    if not isinstance(rendered, (str, Iterator)):
        rendered = _text(rendered, options)
    pieces = (rendered,) if isinstance(rendered, str) else rendered
    try:
        if _is_stdout(options):
            for piece in pieces:
                sys.stdout.write(piece)
            sys.stdout.flush()
        else:
            with open(options.output, "wb") as file:  # noqa: PTH123  # pathlib is slow to load
                for piece in pieces:
                    file.write(piece.encode("utf-8", "backslashreplace"))
    except BrokenPipeError:
        raise
    except OSError as error:  # that of a full disk has no name
        named = "<stdout>" if _is_stdout(options) else options.output
        raise OSError(error.errno, error.strerror, named) from None


def _is_stdout(options: SimpleNamespace) -> bool:
    return options.output in (None, "-")


def _text(document: Document, options: SimpleNamespace) -> str:
    from analyzer.reports.unstyled import render_unstyled

    if not _is_stdout(options):
        return render_unstyled(document)
    colour = is_coloured(options.color, os.environ, is_terminal=sys.stdout.isatty())
    if not colour and not sys.stdout.isatty():
        return _as_encoded(render_unstyled(document))
    try:
        from analyzer.reports import terminal
    except ImportError:  # rich is not installed: a zipapp on a node
        return _as_encoded(render_unstyled(document))
    width = _width()
    shown: str = terminal.render_terminal(document, width=width, colour=colour)
    if terminal.MORE in shown and terminal.MORE not in render_unstyled(document):
        shown += terminal.render_terminal(terminal.CUT, width=width, colour=colour)
    return _as_encoded(shown)


def is_coloured(wanted: str, environment: Mapping[str, str], *, is_terminal: bool) -> bool:
    """Return whether to write colours; `wanted` is the value of ``--color``.

    Source: https://no-color.org, https://force-color.org; both count where they are not empty.
    """
    if wanted != "auto":
        return wanted == "always"
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR"):
        return True
    return is_terminal and environment.get("TERM") != "dumb"


def _width() -> int:
    """Return the columns of the terminal, also when output goes through a pager."""
    import shutil

    behind = 80
    for stream in (sys.__stderr__, sys.__stdin__):
        try:
            behind = os.get_terminal_size(stream.fileno()).columns if stream else behind
            break
        except (OSError, ValueError):  # no terminal, or closed
            continue
    return shutil.get_terminal_size((behind, 24)).columns


#: Replacements of our own characters if the encoding has none of them.
_IN_ASCII: Final[dict[str, str | int | None]] = {
    "\u251c": "|",
    "\u2514": "`",
    "\u2502": "|",
    "\u2500": "-",
    "\u2026": "~",
}


def _as_encoded(text: str) -> str:
    """Return text whose tree lines can be written to stdout in its encoding."""
    try:
        "".join(_IN_ASCII).encode(sys.stdout.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return text.translate(str.maketrans(_IN_ASCII))
    return text
