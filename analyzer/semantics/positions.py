"""Positions in a traversal of chains, and the cache of traversals from them.

Theory of operation
===================

A position is a chain, the index of the next rule, and the packet as it is at that point. What
happens to the packet until it leaves that chain depends on these alone, whatever jumped there: so
it is cached, and a chain that many rules jump to is evaluated once for each packet. A leaf
`FellThrough` means that the packet left the chain at its end; a jump replaces each such leaf by
what the caller does next. This keeps the tree small if branches meet again.

Source: Linux, net/ipv4/netfilter/ip_tables.c, ``ipt_do_table``, and net/netfilter/nf_tables_core.c,
``nft_do_chain``: both keep a stack of jumps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Final, TypeAlias

from analyzer.model.intervals import Intervals
from analyzer.model.packet import UNKNOWN_PACKET, Packet
from analyzer.model.region import Parted
from analyzer.model.value import replace, value
from analyzer.semantics.depth import deep
from analyzer.semantics.effort import MOST_NESTED, MOST_RULES, Effort, TooMany
from analyzer.semantics.grow import Grown
from analyzer.semantics.tree import BySource, FellThrough, Leaf, Tree, Unresolved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.semantics.in_a_row import Rows


@value
class RulePosition:
    """A rule of a chain, by its index."""

    chain: str
    at: int


_FELL_THROUGH: Final = FellThrough()
#: The results for one packet, by the position from which it was evaluated; None: it still is.
_Known: TypeAlias = "dict[tuple[str, int], Tree | None]"


class Walks(ABC):
    """Traversals of the chains of one table; subclasses evaluate the rules.

    Attributes:
        joins_marks: whether marks by source (`Packet.marks`) are evaluated.
    """

    joins_marks: bool = False

    def __init__(self, effort: Effort | None = None) -> None:
        self._cache: dict[Packet, _Known] = {}
        #: Those for the last packet: most often it is the next one too, and hashing takes a while.
        self._last: tuple[Packet | None, _Known] = None, {}
        self._entered: set[str] = set()
        #: Branches of cached trees, by identity, on which no packet leaves its chain.
        self._staying: set[int] = set()
        #: Limits on the work for one question.
        self.effort = effort or Effort()
        #: What was evaluated so far, as equivalent iptables matches.
        self.evaluated: set[type] = set()

    @cached_property
    def rows(self) -> Rows:
        """What rules in a row make of packets from several sources."""
        from analyzer.semantics.in_a_row import Rows  # few dumps need it

        return Rows(self.effort)

    @property
    @abstractmethod
    def visited(self) -> list[str]:
        """The chains that packets entered so far."""

    @abstractmethod
    def _is_end(self, place: RulePosition) -> bool:
        """Return whether a place is past the last rule of a chain of the table."""

    @abstractmethod
    def _matched_at(self, chain: str, at: int, is_source: bool) -> Intervals | None:
        """Return the sources, or the destinations, that a rule matches.

        None: it matches not exactly one network, or there is no such rule.
        """

    @abstractmethod
    def _meets(self, start: RulePosition, packet: Packet, alike: list[int]) -> Tree:
        """Evaluate the rules of a chain for a packet, until it leaves that chain.

        The places in the chain at which the packet continues as it does at `start` are added to
        `alike`, if other packets are likely to become one like it at each of them.
        """

    @deep
    def tree(self, chain: str, packet: Packet) -> Tree:
        """Return what happens to `packet` from the first rule of `chain` on."""
        return self.goto(chain, packet)

    def forget(self) -> None:
        """Forget the results so far, which other packets could seldom share."""
        self._cache.clear()
        self._last = None, {}
        self._staying.clear()

    def onward(self, start: RulePosition, packet: Packet) -> Tree:
        """Return what happens to a packet from a rule on, until it leaves that chain."""
        known = self._of(packet)
        place = start.chain, start.at
        if place in known:
            return known[place] or _loops(start.chain, packet)
        known[place] = None
        try:
            alike: list[int] = []
            tree = self._meets(start, packet, alike)
            if len(tree.rules) > MOST_RULES:
                tree = replace(tree, rules=self.effort.shortened(tree.rules))
            known[place] = tree
            for at in alike:
                known.setdefault((start.chain, at), tree)
        finally:  # a question that ends it may be answered further up
            if known[place] is None:
                del known[place]
        return tree

    def walked(self, start: RulePosition, packet: Packet) -> Tree | None:
        """Return what happens to a packet from a rule on, if that was evaluated already."""
        return self._of(packet).get((start.chain, start.at))

    def take(self, start: RulePosition, packet: Packet, tree: Tree) -> Tree:
        """Keep and return the result for a packet from a rule on, known from another packet."""
        self._of(packet)[start.chain, start.at] = tree
        return tree

    def _of(self, packet: Packet) -> _Known:
        last, known = self._last
        if last is not packet:
            found = self._cache.get(packet)
            if found is None:
                found = self._cache[packet] = {}
            known = found
            self._last = packet, known
        return known

    def goto(self, chain: str, packet: Packet) -> Tree:
        """Return what happens to a packet that enters a chain, until it leaves that chain."""
        if chain in self._entered:
            return _loops(chain, packet)
        if len(self._entered) == MOST_NESTED:
            return Leaf(Unresolved(self.effort.too_many_chains()), UNKNOWN_PACKET)
        self._entered.add(chain)
        try:
            return self.onward(RulePosition(chain, 0), packet)
        finally:
            self._entered.remove(chain)

    def jump(self, chain: str, packet: Packet, behind: RulePosition) -> Tree:
        """Return what happens to a packet that enters a chain and may return to `behind`."""
        return self.returned(self.goto(chain, packet), behind)

    def returned(self, tree: Tree, behind: RulePosition) -> Tree:
        """Return `tree`, continued at `behind` for packets that leave the called chain."""
        if self._is_end(behind):
            return tree  # it leaves the caller with it

        def back(leaf: Leaf) -> Tree:
            leaves = isinstance(leaf.outcome, FellThrough)
            return self.onward(behind, leaf.packet) if leaves else leaf

        try:
            return Grown(back, self.effort.spend, self._staying).of(tree)
        except TooMany:
            return Leaf(Unresolved(self.effort.too_many_branches()), UNKNOWN_PACKET)

    def parted(
        self, by: Parted, packet: Packet, place: RulePosition, goes_on: Callable[[Packet], Tree]
    ) -> Tree | None:
        """Return what happens to the packet from each part of its sources that a rule matches.

        None if that would cost too much; then nothing is known of the source from here on.

        Raises:
            Parted: the rule at `place` does not match on sources alone.
        """
        if by.region is not packet.clients or packet.sources is packet.destinations:
            from analyzer.semantics.in_a_row import together  # few dumps need it

            is_source = by.region is packet.sources
            raise together(by, place.at, lambda at: self._matched_at(place.chain, at, is_source))
        if not self.effort.parts():
            return None
        inside, outside = packet.parted(by)
        return BySource(by.asked, ((by.inside, goes_on(inside)), (by.outside, goes_on(outside))))


def left(packet: Packet) -> Leaf:
    """Return the result for a packet that leaves a chain at its end."""
    return Leaf(_FELL_THROUGH, packet)


def missing(chain: str, packet: Packet) -> Tree:
    """Return the result for a packet that enters a chain that the dump lacks."""
    return Leaf(Unresolved(f"chain {chain} is not in the dump"), packet)


def _loops(chain: str, packet: Packet) -> Tree:
    # The kernel refuses chains that loop, so the dump is not what it had.
    return Leaf(Unresolved(f"chain {chain} loops back to itself"), packet)
