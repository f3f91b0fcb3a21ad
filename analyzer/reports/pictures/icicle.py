"""A probability tree as an icicle: from the hook on the left to the endpoints on the right.

Lengths compare better than angles: a cell is as high as its share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.reports.pictures.cells import TreeCell, every
from analyzer.reports.pictures.svg import fitting, picture, rect, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

    #: Cells, how deep each is, and where it begins.
    _Placed: TypeAlias = Sequence[tuple[TreeCell, int, float]]

_COLUMN: Final = 190.0
_LEAST: Final = 360.0
#: Of the lowest end, so that its name can be read, as far as the picture does not get too high.
_ROW: Final = 40.0
_MOST: Final = 2_400.0
#: Of the title above one of several.
_HEAD: Final = 32.0
#: Of bold text as a size of the font: it takes more room.
_BOLD: Final = 15
_GAP: Final = 1.0
_LINE: Final = 15.0
#: Where a second and a third line have room.
_TWO, _THREE = 34.0, 49.0


def icicle(root: TreeCell, *, alone: bool) -> Iterator[str]:
    """Yield the picture of one tree."""
    found = [*every(root)]
    height = _height(found)
    inside = (_drawn(cell, depth, begins * height, height) for cell, depth, begins in found)
    yield from picture(_width(found), height, root.title, inside, alone=alone)


def icicles(roots: Sequence[TreeCell]) -> Iterator[str]:
    """Yield a picture of several trees, one below the other, for a file of its own."""
    all_of_them = [[*every(root)] for root in roots]
    width = max(map(_width, all_of_them), default=_COLUMN)
    height = sum(_height(found) + _HEAD for found in all_of_them)
    title = "; ".join(root.title for root in roots)
    yield from picture(width, height, title, _below_each_other(all_of_them), alone=True)


def _below_each_other(found: Sequence[_Placed]) -> Iterator[str]:
    top = 0.0
    for each in found:
        root, height = each[0][0], _height(each)
        yield text(0, top + 20, root.title, "strong") + "\n"
        for cell, depth, begins in each:
            yield _drawn(cell, depth, top + _HEAD + begins * height, height)
        top += _HEAD + height


def _width(found: _Placed) -> float:
    return _COLUMN * (1 + max(depth for _, depth, _ in found))


def _height(found: _Placed) -> float:
    lowest = min((cell.size for cell, _, _ in found if cell.size > 0), default=1.0)
    return min(max(_LEAST, _ROW / lowest), _MOST)


def _drawn(cell: TreeCell, depth: int, y: float, whole: float) -> str:
    x = depth * _COLUMN
    height = cell.size * whole - _GAP
    if height < _GAP:
        return ""
    parts = [rect(x, y, _COLUMN - _GAP, height)]
    words = [f"{cell.title}, {cell.share}", cell.says, cell.place]
    parts.append(f"<title>{_joined(words)}</title>")
    if height >= _LINE:
        width = _COLUMN - 12
        parts.append(text(x + 6, y + 14, fitting(cell.title, width, _BOLD), "strong"))
        under = [cell.share if cell.kind != "branch" or not cell.says else cell.says]
        under += [f"{cell.share}, {cell.place}"] if cell.place else []
        for at, (room, each) in enumerate(zip((_TWO, _THREE), under, strict=False)):
            if height >= room:
                parts.append(text(x + 6, y + 29 + 14 * at, fitting(each, width, 10), "small"))
    return f'<g class="{cell.kind}">{"".join(parts)}</g>\n'


def _joined(words: list[str]) -> str:
    from analyzer.reports.pages.blocks import escape

    return escape("; ".join(filter(None, words)))
