"""Positions in a walk through chains, and the cache of walks from them.

Theory of operation
===================

A position is a chain, the index of the next rule, and the packet as it is by then. What becomes of
the packet until it leaves that chain is a function of these alone, whoever sent it there: so it is
kept, and a chain that many rules jump to is walked once for each packet. A leaf `FellThrough` says
that the packet left the chain at its end; a jump puts what the caller does next in the place of
each such leaf. This keeps the tree small where branches meet again.

Source: Linux, net/ipv4/netfilter/ip_tables.c, ``ipt_do_table``, and
net/netfilter/nf_tables_core.c, ``nft_do_chain``: both keep a stack of jumps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from analyzer.model.packet import UNKNOWN_PACKET, Packet
from analyzer.model.region import Parted
from analyzer.model.value import replace
from analyzer.semantics.depth import deep
from analyzer.semantics.effort import MOST_NESTED, MOST_RULES, Effort, TooMany
from analyzer.semantics.grow import Grown
from analyzer.semantics.tree import BySource, FellThrough, Leaf, Tree, Unresolved


class Place(NamedTuple):
    """A rule of a chain, by its index."""

    chain: str
    at: int


Key: TypeAlias = tuple[Place, Packet]


class Walks(ABC):
    """The walks of packets through the chains of one table; subclasses evaluate the rules."""

    def __init__(self, effort: Effort | None = None) -> None:
        self._cache: dict[Key, Tree] = {}
        self._walking: set[Key] = set()
        self._entered: set[str] = set()
        #: Branches of kept trees, by identity, on which no packet leaves its chain.
        self._staying: set[int] = set()
        #: What the walks of one question may cost.
        self.effort = effort or Effort()
        #: What was asked so far, as the matches of iptables that ask it.
        self.judged: set[type] = set()

    @property
    @abstractmethod
    def visited(self) -> list[str]:
        """The chains that packets came to so far."""

    @abstractmethod
    def _is_end(self, place: Place) -> bool:
        """Tell whether a place is behind the last rule of a chain of the table."""

    @abstractmethod
    def _meets(self, start: Place, packet: Packet) -> Tree:
        """Walk a packet along the rules of a chain, until it leaves that chain."""

    @deep
    def tree(self, chain: str, packet: Packet) -> Tree:
        """Return what happens to `packet` from the first rule of `chain` on."""
        return self.goto(chain, packet)

    def forget(self) -> None:
        """Forget what was walked: other packets would seldom share it."""
        self._cache.clear()
        self._staying.clear()

    def onward(self, start: Place, packet: Packet) -> Tree:
        """Return what becomes of a packet from a rule on, until it leaves that chain."""
        key = (start, packet)
        if key in self._cache:
            return self._cache[key]
        if key in self._walking:
            return _loops(start.chain, packet)
        self._walking.add(key)
        try:
            tree = self._meets(start, packet)
        finally:  # a question that ends it may be answered further up
            self._walking.remove(key)
        if len(tree.rules) > MOST_RULES:
            tree = replace(tree, rules=self.effort.shortened(tree.rules))
        self._cache[key] = tree
        return tree

    def walked(self, start: Place, packet: Packet) -> Tree | None:
        """Return what becomes of a packet from a rule on, if that was walked already."""
        return self._cache.get((start, packet))

    def goto(self, chain: str, packet: Packet) -> Tree:
        """Return what becomes of a packet that is sent into a chain, until it leaves that."""
        if chain in self._entered:
            return _loops(chain, packet)
        if len(self._entered) == MOST_NESTED:
            return Leaf(Unresolved(self.effort.too_many_chains()), UNKNOWN_PACKET)
        self._entered.add(chain)
        try:
            return self.onward(Place(chain, 0), packet)
        finally:
            self._entered.remove(chain)

    def jump(self, chain: str, packet: Packet, behind: Place) -> Tree:
        """Return what becomes of a packet that is sent into a chain and comes back to `behind`."""
        return self.returned(self.goto(chain, packet), behind)

    def returned(self, tree: Tree, behind: Place) -> Tree:
        """Return `tree` with what `behind` makes of each packet that leaves the called chain."""
        if self._is_end(behind):
            return tree  # it leaves the caller with it

        def back(leaf: Leaf) -> Tree:
            leaves = isinstance(leaf.outcome, FellThrough)
            return self.onward(behind, leaf.packet) if leaves else leaf

        try:
            return Grown(back, self.effort.spend, self._staying).of(tree)
        except TooMany:
            return Leaf(Unresolved(self.effort.too_many_branches()), UNKNOWN_PACKET)

    def parted(self, by: Parted, packet: Packet, goes_on: Callable[[Packet], Tree]) -> Tree | None:
        """Return what becomes of the packet from each part of its sources, which a rule asks for.

        None: that would cost too much, and nothing is to be known of the source from here on.

        Raises:
            Parted: it is not the sources alone that the rule asks for.
        """
        if by.region is not packet.sources or by.region is packet.destinations:
            raise by
        if not self.effort.parts():
            return None
        inside, outside = packet.parted(by)
        return BySource(by.asked, ((by.inside, goes_on(inside)), (by.outside, goes_on(outside))))


def left(packet: Packet) -> Tree:
    """Return what becomes of a packet that leaves a chain at its end."""
    return Leaf(FellThrough(), packet)


def missing(chain: str, packet: Packet) -> Tree:
    """Return what becomes of a packet that is sent into a chain that the dump lacks."""
    return Leaf(Unresolved(f"chain {chain} is not in the dump"), packet)


def _loops(chain: str, packet: Packet) -> Tree:
    # The kernel refuses chains that loop, so the dump is not what it held.
    return Leaf(Unresolved(f"chain {chain} loops back to itself"), packet)
