"""Sequences that are computed on first access."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar, overload

    T = TypeVar("T")
    Base = Sequence[T]
else:
    T = None

    class _Base:
        def __class_getitem__(cls, _: object) -> type:
            return Sequence

    Base = _Base


class Lazy(Base[T]):
    """Values of a dump that are parsed on first access.

    Of ten thousand Services a question usually concerns one.

    Attributes:
        source: what they are made from: lines of text with their numbers, or JSON values; for
            callers that need less than the values.
    """

    __slots__ = ("_count", "_made", "_make", "_said", "source")

    def __init__(
        self,
        source: Any,
        make: Callable[[Any], tuple[T, ...]],
        count: Callable[[Any], int] | None = None,
    ) -> None:
        self.source = source
        self._make = make
        self._made: tuple[T, ...] | None = None
        self._count = count
        self._said: str | None = None

    @property
    def said(self) -> str:
        """What `source` says, as text to search in."""
        if isinstance(self.source, tuple):
            return str(self.source[0])
        # That of JSON takes a while: once for all searches.
        if self._said is None:
            self._said = repr(self.source)
        return self._said

    def _all(self) -> tuple[T, ...]:
        if self._made is None:
            self._made = self._make(self.source)
        return self._made

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, index: int) -> T: ...
        @overload
        def __getitem__(self, index: slice) -> Sequence[T]: ...

    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._all()[index]

    def __len__(self) -> int:
        if self._made is None and self._count is not None:
            return self._count(self.source)
        return len(self._all())

    def __iter__(self) -> Iterator[T]:
        return iter(self._all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._all() == tuple(other)

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return repr(self._all())
