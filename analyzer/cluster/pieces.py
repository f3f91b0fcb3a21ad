"""Pieces of a dump's text, looked up in the text of another dump."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Bytes that are compared at once; where they differ, chain by chain.
_PIECE: Final = 1 << 15
#: Bytes within which a piece is searched for that is not where it is expected.
_WINDOW: Final = 1 << 18


@value
class TextPiece:
    """Text of consecutive chains, with the offset of each in it.

    Attributes:
        window: bytes within which it is searched, after the piece before it.
    """

    text: bytes
    first: bytes
    chains: tuple[tuple[bytes, int, int], ...]
    is_declaration: bool
    window: int


def lines_but(data: bytes, passed: Sequence[tuple[int, int]]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines outside some pieces, each with its offset."""
    at = 0
    for first, last in [*passed, (len(data), len(data))]:
        for line in data[at:first].splitlines(keepends=True):
            yield at, line
            at += len(line)
        at = last


def find(data: bytes, text: bytes, first: bytes, start: int, within: tuple[int, int]) -> int | None:
    """Return where whole lines are, from `start` on and not far from it; None if nowhere.

    `first` is the first of them; `within`: where nat ends, and how far to look.
    """
    end, window = within
    last = min(end + 1, start + window + len(first))
    at = data.find(first, start, last)
    while at >= 0 and data[at - 1] != _NEWLINE:
        at = data.find(first, at + 1, last)
    return at if at >= 0 and at + len(text) <= end + 1 and data.startswith(text, at) else None


_NEWLINE: Final = 10


def pieces_of(
    data: bytes, run: Sequence[tuple[bytes, int, int]], behind: int, *, is_declaration: bool
) -> Iterator[TextPiece]:
    """Yield consecutive chains in pieces of a suitable size.

    `behind` is where the chains before them end.
    """
    begun = 0
    gap = max(0, run[0][1] - behind) if run else 0
    for at, (_, _, last) in enumerate(run):
        start = run[begun][1]
        if last - start >= _PIECE or at == len(run) - 1:
            text = data[start:last]
            chains = tuple((name, a - start, b - start) for name, a, b in run[begun : at + 1])
            first = text[: text.index(b"\n") + 1]
            yield TextPiece(text, first, chains, is_declaration, _WINDOW + 2 * gap)
            gap = 0
            begun = at + 1
