"""A report as Markdown, for tickets, with real tables.

Text of a dump stays text there: it makes no markup, no link and no mention.

Source: GitHub Flavored Markdown, 2.4 backslash escapes, 4.10 tables, 6.9 autolinks, 6.12 breaks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from analyzer.model.text import printable
from analyzer.reports.document import Cell, Document, Line, Style, TextTable, spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_ACTING: Final = re.compile(r"[\\`*_{}\[\]<>|~#!$]")
#: What hosts of tickets make links or mentions of, also where nothing stands before it.
_LINKS: Final = re.compile(r"@|://|www\.", re.IGNORECASE)
#: A line may begin a list, a heading or a quotation. Only punctuation can be escaped.
_BEGINS: Final = re.compile(r"^(\s*\d*)((?<!\d)[-+=]|(?<=\d)[.)])(?=\s|$)")
_STRONG: Final = {Style.STRONG, Style.BAD}


def render_markdown(document: Document) -> str:
    """Return the document; preformatted lines become code."""
    return "".join(_blocks(document))


def _blocks(document: Document) -> Iterator[str]:
    lines: list[Line] = []
    for block in document.blocks:
        if isinstance(block, Line) and block.pieces:
            lines.append(block)
            continue
        yield from _paragraph(lines)
        lines = []
        if isinstance(block, TextTable):
            yield from _table(block)
    yield from _paragraph(lines)


def _paragraph(lines: Sequence[Line]) -> Iterator[str]:
    if not lines:
        return
    texts = ["".join(span.text for span in spans(line.pieces)) for line in lines]
    placed = (" ", "\u251c", "\u2514", "\u2502")
    if any(line.whole for line in lines) or any(text.startswith(placed) for text in texts):
        inside = "\n".join(printable(text) for text in texts)
        longest = max((len(run) for run in re.findall("`+", inside)), default=0)
        fence = "`" * max(3, longest + 1)
        yield f"{fence}text\n{inside}\n{fence}\n\n"
        return
    yield "\\\n".join(_BEGINS.sub(r"\1\\\2", _inline(line.pieces)) for line in lines) + "\n\n"


def _table(table: TextTable) -> Iterator[str]:
    yield _row([column.heading for column in table.columns])
    yield _row(["---:" if column.right else "---" for column in table.columns], plain=True)
    for row in table.rows:
        yield _row([*row, *[""] * (len(table.columns) - len(row))])
    yield "\n"


def _row(cells: Sequence[Cell], *, plain: bool = False) -> str:
    told = [cell if plain and isinstance(cell, str) else _inline(cell) for cell in cells]
    return f"| {' | '.join(told)} |\n"


def _inline(cell: Cell) -> str:
    found = []
    for span in spans(cell):
        text = _escaped(span.text)
        bare = text.strip()
        if span.style in _STRONG and bare:
            # Marks of emphasis are next to words, blanks outside.
            text = text.replace(bare, f"**{bare}**", 1)
        found.append(text)
    return "".join(found)


def _escaped(text: str) -> str:
    shown = printable(text).replace("&", "&amp;")
    shown = _ACTING.sub(lambda found: f"\\{found[0]}", shown)
    return _LINKS.sub(lambda found: "".join(_entity(each) for each in found[0]), shown)


def _entity(character: str) -> str:
    return character if character.isalnum() else f"&#{ord(character)};"
