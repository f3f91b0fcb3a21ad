"""A mark that depends on which of its possible sources a packet comes from.

Theory of operation
===================

The chain of a Service marks flows from outside the cluster, and that of each endpoint the flows of
the endpoint itself (hairpin). If each such rule split the packet, all that follows would be
evaluated twice. Few rules match on the mark before a flow has been sent to an endpoint, so the
packet stays one, and has a mark for each part of its sources.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer.model.intervals import Intervals, common_of, joined, without
from analyzer.model.packet import Mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    #: Parts of the sources, each with the mark of packets from there.
    MarksBySource: TypeAlias = tuple[tuple[Intervals, Mark], ...]


class SourceMarks:
    """The marks of a packet by its source; no two parts overlap, and no two have the same mark.

    Attributes:
        is_joined: whether rules that match on sources have decided any of it.
        mark: what all of the marks have in common; other bits are unknown.
    """

    __slots__ = ("_code", "is_joined", "mark", "parts")

    def __init__(self, parts: MarksBySource, *, is_joined: bool) -> None:
        self.parts = parts
        self.is_joined = is_joined
        (first, mark), *others = parts
        for _, other in others:
            mark = mark.joined(other)
        self.mark = mark
        self._code = hash((is_joined, len(parts), first, mark.value, mark.unknown))

    @classmethod
    def of(cls, sources: Intervals, mark: Mark) -> SourceMarks:
        """Return the same mark for all sources."""
        return cls(((sources, mark),), is_joined=False)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, SourceMarks)
            and self._code == other._code
            and self.is_joined is other.is_joined
            and self.parts == other.parts
        )

    def __hash__(self) -> int:
        return self._code

    def __repr__(self) -> str:
        return f"SourceMarks({self.parts!r}, is_joined={self.is_joined!r})"

    @property
    def size(self) -> int:
        """The number of intervals in all parts."""
        return sum(len(where) for where, _ in self.parts)

    def with_bits(self, value: int, mask: int) -> SourceMarks:
        """Return the marks with the bits of `mask` cleared and those of `value` flipped."""
        changed = ((where, mark.with_bits(value, mask)) for where, mark in self.parts)
        return SourceMarks(_merged(changed), is_joined=self.is_joined)

    def where(self, sources: Intervals, other: SourceMarks) -> SourceMarks:
        """Return the marks of the other one for some sources, and these for the rest."""
        theirs = ((common_of(each, sources), mark) for each, mark in other.parts)
        mine = ((without(each, sources), mark) for each, mark in self.parts)
        return SourceMarks(_merged((*mine, *theirs)), is_joined=True)


def _merged(parts: Iterable[tuple[Intervals, Mark]]) -> MarksBySource:
    """Return parts in the order of their marks, those with the same mark as one."""
    found: dict[tuple[int, int], tuple[Intervals, Mark]] = {}
    for where, mark in parts:
        if where:
            key = mark.value, mark.unknown
            before = found.get(key)
            found[key] = (where if before is None else joined((*before[0], *where))), mark
    return tuple([found[key] for key in sorted(found)])
