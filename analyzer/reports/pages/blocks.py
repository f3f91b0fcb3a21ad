"""A report for people as HTML: lines and tables, with all text escaped.

Control characters are replaced by visible signs, as everywhere; markup is escaped. Names in
right-to-left scripts get elements of their own, so that they reorder nothing around them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.model.text import printable
from analyzer.reports.document import Block, Cell, Line, Style, TextTable, spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_ESCAPES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}
_TABLE: Final = str.maketrans(_ESCAPES)
_CLASSES: Final = {
    Style.PLAIN: "",
    Style.STRONG: "strong",
    Style.FAINT: "faint",
    Style.GOOD: "good",
    Style.WARNING: "warning",
    Style.BAD: "bad",
}
#: What lines begin with whose places matter: those of trees and of pictures in letters.
_PLACED: Final = (" ", "\u251c", "\u2514", "\u2502")
#: What trees and pictures in letters hold, whose lines must not be wrapped.
_DRAWN: Final = ("\u251c", "\u2514", "\u2502", "% |")


def escape(text: str) -> str:
    """Return text escaped for HTML, in an element or in a quoted attribute."""
    return printable(text).translate(_TABLE)


def html_of(blocks: Sequence[Block]) -> Iterator[str]:
    """Yield blocks as HTML; preformatted lines, for example trees, as printed."""
    lines: list[Line] = []
    for block in blocks:
        if isinstance(block, Line) and block.pieces:
            lines.append(block)
            continue
        yield from _lines(lines)
        lines = []
        if isinstance(block, TextTable):
            yield from table(block)
    yield from _lines(lines)


def _lines(lines: Sequence[Line]) -> Iterator[str]:
    if any(line.whole or _is_placed(line) for line in lines):
        yield _pre([_inline(line.pieces) for line in lines])
        return
    for line in lines:
        yield f"<p>{_inline(line.pieces)}</p>\n"


def _is_placed(line: Line) -> bool:
    text = "".join([span.text for span in spans(line.pieces)])
    return text.startswith(_PLACED)


def _pre(lines: Sequence[str]) -> str:
    text = "\n".join(lines)
    about = 'class="wide" tabindex="0" role="group" aria-label="As printed"'
    wraps = "" if any(each in text for each in _DRAWN) else ' class="text"'
    return f"<div {about}><pre{wraps}>{text}</pre></div>\n"


def table(
    found: TextTable,
    *,
    name: str = "",
    caption: str = "",
    sorts: bool = True,
    most: int | None = None,
) -> Iterator[str]:
    """Yield a table; scripts find it by `name`, and `sorts` allows them to sort it.

    Of its rows the first `most` are given.
    """
    label = escape(caption or found.columns[0].heading.lower() or "table")
    identity = f' id="{name}"' if name else ""
    kind = ' class="sorts"' if sorts else ""
    yield f'<div class="wide" tabindex="0" role="group" aria-label="{label}">'
    yield f"<table{identity}{kind}><thead><tr>"
    for column in found.columns:
        right = ' class="right"' if column.right else ""
        heading = escape(column.heading)
        # A heading has text for who cannot see which column is without one.
        yield f'<th scope="col"{right}>{heading or "<span class=unseen>remark</span>"}</th>'
    yield "</tr></thead><tbody>\n"
    for row in found.rows[:most]:
        yield "<tr>"
        for column, cell in zip(found.columns, (*row, *[""] * len(found.columns)), strict=False):
            right = ' class="right"' if column.right else ""
            yield f"<td{right}>{_inline(cell)}</td>"
        yield "</tr>\n"
    yield "</tbody></table></div>\n"


def _inline(cell: Cell) -> str:
    found = []
    for span in spans(cell):
        text = escape(span.text)
        kind = _CLASSES[span.style]
        found.append(f'<span class="{kind}">{text}</span>' if kind else text)
    return "".join(found)
