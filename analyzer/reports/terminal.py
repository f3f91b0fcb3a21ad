"""A report on a terminal, through rich: coloured, and fitted to its width."""

from __future__ import annotations

import io
import string
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from analyzer.model.text import printable
from analyzer.reports.document import Cell, Document, Line, Span, Style, TextTable, spans

#: Characters that a foldable column keeps at least.
_LEAST: Final = 16
#: And names: before others are left out, after that, and before rows go on in other lines.
_NAMES: Final = (28, 16, 10)
#: Parts of a shortened name that may be its beginning, the best first.
_HEADS: Final = ((1, 2), (3, 4), (1, 1), (1, 4), (0, 1))
#: Names that are compared with each other, of a column of any length.
_MOST_COMPARED: Final = 200
_ALNUM: Final = string.ascii_letters + string.digits
_GAP: Final = 2
#: Replaces what is left out of a name.
MORE: Final = "\u2026"
#: Said below a report in which any name is cut.
CUT: Final = Document(
    [
        Line(
            (
                Span(
                    f"Names are cut at {MORE} to fit; whole in a wider terminal, or with --output "
                    "FILE.",
                    Style.FAINT,
                ),
            )
        )
    ]
)
#: What a line of a tree begins with.
_BRANCHES: Final = " \u251c\u2514\u2502\u2500"
#: By how much deeper a line of a table that does not fit begins for each column before it.
_STEP: Final = 2

#: Legible on light and on dark: yellow has a contrast of 1.7 on white in xterm's colours, where
#: magenta has 4.1, and 5.1 on black. Nothing is shown by green alone.
_STYLES: Final = {
    Style.PLAIN: "",
    Style.STRONG: "bold",
    Style.FAINT: "dim",
    Style.GOOD: "green",
    Style.WARNING: "magenta",
    Style.BAD: "bold red",
}


def render_terminal(document: Document, *, width: int, colour: bool) -> str:
    """Return the document for a terminal of `width` columns."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        # Else it goes by the environment, which `output` has looked at.
        _environ={},
    )
    for block in document.blocks:
        match block:
            case Line(pieces, whole):
                for line in (
                    [cell_text(pieces)] if whole else _wrapped(cell_text(pieces), console, width)
                ):
                    console.print(line, soft_wrap=whole)
            case TextTable():
                fitted = _fitted(block, width)
                if fitted is not None:
                    console.print(_table(block, fitted))
                else:
                    for line in _stacked(block, width):
                        for piece in _hung(line, console, width):
                            console.print(piece, overflow="fold")
    return out.getvalue()


def in_columns(table: TextTable, width: int) -> tuple[list[str], list[list[Text]]]:
    """Return headings and rows of as much of a table as fits; all of it if nothing does."""
    widths = _fitted(table, width)
    if widths is None:
        widths = dict(enumerate(_natural(table)))
    return [table.columns[at].heading for at in widths], [*_rows(table, widths)]


def _wrapped(text: Text, console: Console, width: int) -> Iterator[Text]:
    """Yield the lines that a text takes, all as deep in their tree as the first."""
    lead = len(text.plain) - len(text.plain.lstrip(_BRANCHES))
    if text.cell_len <= width or not 0 < lead < width // 2:
        yield text
        return
    head = text[:lead]
    for line in text[lead:].wrap(console, width - lead):
        yield head + line
        below = head.plain.replace("\u251c", "\u2502").replace("\u2514", " ").replace("\u2500", " ")
        head = Text(below, head.spans[0].style if head.spans else "")


def _hung(line: Text, console: Console, width: int) -> Iterator[Text]:
    """Yield the lines that a line of a row takes, all but the first a step deeper."""
    lead = len(line.plain) - len(line.plain.lstrip(" "))
    if line.cell_len <= width or lead + _STEP >= width // 2:
        yield line
        return
    first, *others = line[lead:].wrap(console, width - lead - _STEP)
    yield Text(" " * lead) + first
    for each in others:
        yield Text(" " * (lead + _STEP)) + each


def cell_text(cell: Cell) -> Text:
    """Return a cell, or the spans of a line, with its colours."""
    text = Text()
    for span in spans(cell):
        text.append(printable(span.text), _STYLES[span.style])
    return text


def _stacked(table: TextTable, width: int) -> Iterator[Text]:
    """Yield header and rows of a table that is too wide as lines, so that no address is cut.

    A row continues on another line before columns that begin one. A line is indented the deeper,
    the more columns are before it; what is left empty repeats what is above.
    """
    broken: set[int] = set()
    lines = [line for row in table.rows for line in _row_lines(table, row, width, broken)]
    header = tuple(Span(column.heading, Style.STRONG) for column in table.columns)
    yield from _row_lines(table, header, width, broken, is_header=True)
    yield from lines


def _row_lines(
    table: TextTable,
    row: tuple[Cell, ...],
    width: int,
    broken: set[int],
    *,
    is_header: bool = False,
) -> Iterator[Text]:
    """Yield the lines of a row, and note before which columns it continues on another one.

    A header continues where a row did.
    """
    begins = [at for at, column in enumerate(table.columns) if column.begins]
    line = Text()
    for first, behind in zip([0, *begins], [*begins, len(row)], strict=True):
        told = [text for cell in row[first:behind] if (text := cell_text(cell)).cell_len]
        part = Text(" " * _STEP).join(told)
        if not told:
            continue
        fits = line.cell_len + _STEP + part.cell_len <= width
        if line.cell_len and (first not in broken if is_header else fits):
            line = line + Text(" " * _STEP) + part
            continue
        if line.cell_len:
            broken.add(first)
            yield line
        line = Text(" " * (first * _STEP)) + part
    if line.cell_len:
        yield line


def _table(table: TextTable, widths: Mapping[int, int]) -> RichTable:
    shown = RichTable(box=None, pad_edge=False, padding=(0, _GAP // 2))
    for at in widths:
        column = table.columns[at]
        shown.add_column(
            column.heading,
            justify="right" if column.right else "left",
            overflow="fold",
            no_wrap=not column.foldable,
            header_style="bold",
            width=widths[at] if column.foldable else None,
        )
    for cells in _rows(table, widths):
        shown.add_row(*cells)
    return shown


def _rows(table: TextTable, widths: Mapping[int, int]) -> Iterator[list[Text]]:
    """Yield the cells of each row in the columns that are shown, with names shortened to fit."""
    filled = [(*row, *[""] * (len(table.columns) - len(row))) for row in table.rows]
    ways = {
        at: _way_to_shorten({cell_text(row[at]).plain for row in filled}, most)
        for at, most in widths.items()
        if table.columns[at].shortens
    }
    for row in filled:
        yield [
            _shortened(cell_text(row[at]), most, ways[at]) if at in ways else cell_text(row[at])
            for at, most in widths.items()
        ]


def _way_to_shorten(names: set[str], most: int) -> tuple[int, int]:
    """Return how many characters to skip of a column's long names, and then to show.

    A name loses its middle, unless more of them are told apart by other parts: those of a cloud's
    nodes begin and end alike.
    """
    long = sorted(name for name in names if cell_len(name) > most)[:_MOST_COMPARED]
    heads = [(0, (most - 1) * part // whole) for part, whole in _HEADS]
    ends = zip(long[0], long[-1], strict=False) if long else ()
    alike = next((at for at, (a, b) in enumerate(ends) if a != b), 0)
    skipped = len(long[0][:alike].rstrip(_ALNUM)) if long else 0
    ways = [*heads, (skipped, most - 2)] if skipped else heads
    return max(ways, key=lambda way: len({_shortened(Text(n), most, way).plain for n in long}))


def _parts(name: str, most: int, way: tuple[int, int]) -> tuple[tuple[int, str], tuple[int, str]]:
    """Return two parts of a long name, each with where it begins."""
    skipped, shown = way
    # A character may take two columns.
    ends = max(at for at in range(skipped, len(name) + 1) if cell_len(name[skipped:at]) <= shown)
    room = most - 1 - shown if not skipped else 0
    again = min(at for at in range(len(name) + 1) if cell_len(name[at:]) <= room)
    return (skipped, name[skipped:ends]), (again, name[again:])


def _shortened(text: Text, most: int, way: tuple[int, int]) -> Text:
    """Return a name of at most `most` columns, with a sign for each part that is left out."""
    if text.cell_len <= most:
        return text
    sign = Text(MORE, style=next((each.style for each in text.spans), ""))
    shown = Text()
    reached = 0
    for begins, part in _parts(text.plain, most, way):
        if begins > reached:
            shown += sign
        shown += text[begins : begins + len(part)]
        reached = begins + len(part)
    return shown


def _fitted(table: TextTable, width: int) -> dict[int, int] | None:
    """Return the columns to show, each with the width of its longest cell; None if nothing fits.

    Names lose their middle first, except for what distinguishes them; then spare columns go; then
    names lose what they can.
    """
    natural = _natural(table)
    kept = list(range(len(table.columns)))
    spare = sorted((at for at in kept if table.columns[at].spare), key=_spare_of(table))
    for least in _NAMES:
        while True:
            widths = _within(table, natural, kept, least, width)
            if widths is not None:
                return widths
            if not spare:
                break
            kept.remove(spare.pop())
    return None


def _natural(table: TextTable) -> list[int]:
    """Return the width of each column's longest cell."""
    return [
        max(
            len(column.heading),
            max((cell_text(row[at]).cell_len for row in table.rows if at < len(row)), default=0),
        )
        for at, column in enumerate(table.columns)
    ]


def _spare_of(table: TextTable) -> Callable[[int], int]:
    return lambda at: table.columns[at].spare


def _within(
    table: TextTable, natural: list[int], kept: list[int], least: int, width: int
) -> dict[int, int] | None:
    """Return widths that fit, names not below `least`; None if there are none."""
    columns = table.columns
    floor = {at: _floor(table, at, natural[at], least) for at in kept}
    room = width - sum(floor.values()) - _GAP * (len(kept) - 1)
    if room < 0:
        return None
    # Names that are cut take no more lines, so what takes lines is widened first.
    foldable = [(at, width // 3) for at in kept if columns[at].foldable]
    names = [(at, width) for at in kept if columns[at].shortens]
    whole = [(at, width) for at, _ in foldable]
    for at, most in (*foldable, *names, *whole):
        more = max(0, min(room, min(natural[at], most) - floor[at]))
        floor[at] += more
        room -= more
    return floor


def _floor(table: TextTable, at: int, natural: int, least: int) -> int:
    """Return how narrow a column may be.

    Names are not narrower than their heading, which stays. Of sentences no word is broken that has
    up to `least` characters.
    """
    column = table.columns[at]
    if column.foldable:
        words = (word for row in table.rows[:_MOST_COMPARED] for word in _words_of(row, at))
        longest = max(map(cell_len, words), default=0)
        return min(natural, max(_LEAST, min(longest, least)))
    return min(natural, max(least, cell_len(column.heading))) if column.shortens else natural


def _words_of(row: tuple[Cell, ...], at: int) -> list[str]:
    return cell_text(row[at]).plain.split() if at < len(row) else []
