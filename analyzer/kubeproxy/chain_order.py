"""Which chains flows may come to once they have come to another.

Theory of operation
===================

From a chain a flow comes to those that its rows lead to. When it leaves, it goes on behind the rule
that sent it there: to the chains that later rows of the caller lead to, and to those that are met
behind the caller itself. Sets of chains are numbers with a bit for each, so that one pass over all
rows tells it of all chains. What rows match on is not looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

    #: For each row of a chain, in order, the chains that it leads to.
    Rows: TypeAlias = Sequence[Collection[str]]

#: All chains.
_ALL: Final = -1


class ChainOrder:
    """The order in which flows to one frontend meet chains.

    `rows` are those of all chains that the flows may come to from those in `entries`, which
    others than these chains lead to: in whatever order, and each as often as it stands there.
    """

    def __init__(self, rows: Mapping[str, Rows], entries: Iterable[str]) -> None:
        self._rows = rows
        self._entries = tuple(entries)
        # The first bit is that of all chains of which nothing is known.
        self._bits = {name: 2 << at for at, name in enumerate(rows)}

    def chains(self, names: Iterable[str | None]) -> int:
        """Return chains as a set, to be held against other sets; None: it may be any."""
        found = 0
        for name in names:
            found |= _ALL if name is None else self._bits.get(name, 1)
        return found

    def after(self, name: str) -> int:
        """Return the chains that a flow may come to once it has come to one, as a set."""
        return self._after.get(name, _ALL) | 1

    @cached_property
    def _after(self) -> Mapping[str, int]:
        """The chains that may be met behind the beginning of each; none if chains loop."""
        order = self._from_the_ends()
        below: dict[str, int] = {}  # the chains that its rows lead to
        behind = dict.fromkeys(self._rows, 0)  # those behind the rules that lead to it
        callers: dict[str, set[str]] = {name: set() for name in self._rows}
        for name in order:
            found = 0
            for row in reversed(self._rows[name]):
                known = [to for to in row if to in self._rows]
                for to in known:
                    behind[to] |= found
                    callers[to].add(name)
                for to in known:
                    found |= below[to] | self._bits[to]
            below[name] = found
        for at, name in enumerate(self._entries):
            for other in (*self._entries[:at], *self._entries[at + 1 :]):
                behind[name] |= below[other] | self._bits[other]
        for name in reversed(order):
            for caller in callers[name]:
                behind[name] |= behind[caller]
        return {name: below[name] | behind[name] for name in order}

    def _from_the_ends(self) -> Sequence[str]:
        """Return the chains, each behind those that it leads to; none where some loop."""
        found: dict[str, None] = {}
        entered: set[str] = set()
        for start in self._rows:
            rest = [start]
            while rest:
                name = rest[-1]
                below = {to for row in self._rows[name] for to in row if to in self._rows}
                ahead = [] if name in found else [to for to in below if to not in found]
                if not ahead:
                    found[name] = None
                    rest.pop()
                elif name in entered:
                    return ()  # the kernel takes no such chains
                else:
                    entered.add(name)
                    rest += ahead
        return tuple(found)
