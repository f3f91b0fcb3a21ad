"""Packets that rules have counted, and which rules have counted any since the last reading."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from operator import ne
from typing import Generic, TypeAlias, TypeVar

#: A rule: its chain, and its number there from 0.
RulePlace: TypeAlias = tuple[str, int]
W = TypeVar("W")


class CountedRules(ABC, Generic[W]):
    """Rules of one table whose counters are read.

    Args:
        where: of each rule, where its counter stands in what the kernel returns.
    """

    def __init__(self, where: Mapping[RulePlace, W]) -> None:
        self._where = dict(where)
        self._last: Sequence[int] = [0] * len(self._where)

    @abstractmethod
    def _values(self) -> Sequence[int]:
        """Return the packets that each rule has counted, in the order of the rules."""

    def packets(self) -> Mapping[RulePlace, int]:
        """Return the packets that each rule has counted."""
        return dict(zip(self._where, self._values(), strict=True))

    def new(self) -> Iterator[tuple[RulePlace, int]]:
        """Yield the rules whose counters have changed since the last call, and by how much.

        Of ten thousand rules a few have: no number is made for the others.
        """
        values, last = self._values(), self._last
        self._last = values
        for rule, now, before in compress(
            zip(self._where, values, last, strict=True), map(ne, values, last)
        ):
            yield rule, now - before
