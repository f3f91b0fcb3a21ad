"""The parts of a report for people, independent of the output format.

A report builds a `Document`; `plain` and `terminal` show it. Every text in it may come from a
dump: it is data, and what shows it makes it printable.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias


@enum.unique
class Style(enum.Enum):
    """The meaning of a piece of text; the terminal decides its look."""

    PLAIN = enum.auto()
    STRONG = enum.auto()
    FAINT = enum.auto()
    GOOD = enum.auto()
    WARNING = enum.auto()
    BAD = enum.auto()


@value
class Span:
    """Text in one style."""

    text: str
    style: Style = Style.PLAIN


#: A piece of a line; a plain string is a span of style PLAIN.
Piece: TypeAlias = str | Span
Cell: TypeAlias = Piece | tuple[Piece, ...]


@value
class Line:
    """Spans side by side; none for an empty line.

    Attributes:
        whole: it holds a command, which is not broken where the terminal is narrow: it would not
            be one when it is copied.
    """

    pieces: tuple[Piece, ...] = ()
    whole: bool = False


@value
class Column:
    """A column of a table; numbers are right-aligned.

    Attributes:
        foldable: it may take several lines where the terminal is narrow: sentences.
            A number or an address that is cut would read as another one.
        shortens: it holds names, which lose their middle where the terminal is narrow.
        spare: it is left out first where even that is too wide; the higher, the sooner.
        begins: where nothing helps, a row may go on in another line before it.
    """

    heading: str
    right: bool = False
    foldable: bool = False
    shortens: bool = False
    spare: int = 0
    begins: bool = False


@value
class TextTable:
    """Rows below a header; missing cells are empty."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


Block: TypeAlias = Line | TextTable


@value
class Document:
    """A report."""

    blocks: Sequence[Block]


def spans(cell: Cell) -> tuple[Span, ...]:
    """Return the spans of a cell."""
    pieces = cell if isinstance(cell, tuple) else (cell,)
    return tuple(Span(p) if isinstance(p, str) else p for p in pieces)
