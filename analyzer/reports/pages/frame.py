"""The HTML around an answer: one file, whose security policy forbids loading anything.

Theory of operation: a Content-Security-Policy in the page allows the one style and the one script
that stand in it, by their hashes, and nothing else: no network, no other script, no style of an
element, no form, no base. Data are in a block that is not executed. Trusted Types forbid the script
to turn text into markup. Without scripts the page still has all of the text report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.model.value import value
from analyzer.reports.document import Block, TextTable
from analyzer.reports.pages.blocks import escape, html_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: What makes characters of data harmless in HTML; JSON allows these escapes in strings, and has
#: the characters nowhere else.
_IN_SCRIPT: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


@value(kw_only=True)
class Page:
    """An answer as a page.

    Attributes:
        title: the question, in a few words.
        head: what a reader needs first.
        diagnostics: those that are more than informative are in the page too: its readers have not
            seen what was printed on standard error.
        figures: markup of pictures and of tables that scripts extend, made of escaped text.
        rest: what follows them.
        data: JSON by the name that scripts use, in pieces.
    """

    title: str
    head: Sequence[Block]
    diagnostics: Sequence[Diagnostic] = ()
    figures: Iterable[str] = ()
    rest: Sequence[Block] = ()
    data: Mapping[str, Iterable[str]] = MappingProxyType({})


def rendered(page: Page) -> Iterator[str]:
    """Yield the page in pieces."""
    from analyzer import __version__

    style, script = bundled("page.css"), bundled("page.js")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    )
    title = escape(page.title)
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title} - kubeodds</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<header><p class="program">kubeodds</p><h1>{title}</h1></header>\n<main>\n'
        '<section class="head" aria-label="Summary">\n'
    )
    yield from html_of(page.head)
    yield from _warnings(page.diagnostics)
    yield "</section>\n"
    yield from page.figures
    if page.rest:
        yield '<section class="rest" aria-label="Answer">\n'
        yield from html_of(page.rest)
        yield "</section>\n"
    yield (
        f"</main>\n<footer><p>kubeodds {__version__}. One file: it loads nothing, and nothing in "
        "it leaves this machine. Shares are exact, and printed as the command line prints them."
        "</p></footer>\n"
    )
    for name, pieces in page.data.items():
        yield f'<script type="application/json" id="data-{name}">'
        for piece in pieces:
            yield piece.translate(_IN_SCRIPT)
        yield "</script>\n"
    yield f"<script>{script}</script>\n</body>\n</html>\n"


def _warnings(diagnostics: Iterable[Diagnostic]) -> Iterator[str]:
    told = [each for each in diagnostics if each.severity is not Severity.INFO]
    if told:
        yield '<ul class="warnings" aria-label="Warnings">\n'
        for each in told:
            place = "".join(f":{at}" for at in (each.line, each.column) if at is not None)
            words = f"{each.file}{place}: {each.severity.value}: {each.message}"
            yield f"<li>{escape(words)}</li>\n"
        yield "</ul>\n"


def until_table(blocks: Sequence[Block]) -> tuple[Sequence[Block], Sequence[Block]]:
    """Return the lines before the first table of a report, and the rest."""
    first = next((at for at, each in enumerate(blocks) if isinstance(each, TextTable)), len(blocks))
    return blocks[:first], blocks[first:]


def bundled(name: str) -> str:
    """Return a file built by ``make pages``: ``page.css`` or ``page.js``."""
    from importlib.resources import files

    return files("analyzer").joinpath("data", "pages", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return what a policy calls the content of an element.

    Source: W3C, Content Security Policy Level 3, 6.7.2.3, "element's content match source list".
    """
    import hashlib
    from base64 import b64encode

    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
