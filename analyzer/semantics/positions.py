"""Positions on a walk through chains, and the cache of walks from them.

A position is a chain, the index of the next rule, the packet as it is by then, and the stack of
positions to return to. What becomes of the packet is a function of these alone, so it is kept;
that keeps the tree small where branches meet again.

Source: Linux, net/ipv4/netfilter/ip_tables.c, ``ipt_do_table``, and
net/netfilter/nf_tables_core.c, ``nft_do_chain``: both keep such a stack of jumps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeAlias

from analyzer.model.packet import Packet
from analyzer.model.value import value
from analyzer.semantics.depth import deep
from analyzer.semantics.tree import FellThrough, Leaf, Tree, Unresolved


@value
class Place:
    """A rule of a chain, by its index."""

    chain: str
    index: int


Stack: TypeAlias = tuple[Place, ...]
Key: TypeAlias = tuple[Place, Packet, Stack]


class Walks(ABC):
    """The walks of packets through the chains of one table; how rules are met is the heir's."""

    def __init__(self) -> None:
        self._cache: dict[Key, Tree] = {}
        self._walking: set[Key] = set()
        #: What was asked so far, as the matches of iptables that ask it.
        self.judged: set[type] = set()

    @property
    @abstractmethod
    def visited(self) -> list[str]:
        """The chains that packets came to so far."""

    @abstractmethod
    def _meets(self, start: Place, packet: Packet, stack: Stack) -> Tree:
        """Walk a packet along the rules of a chain, and on."""

    @deep
    def tree(self, chain: str, packet: Packet) -> Tree:
        """Return what happens to `packet` from the first rule of `chain` on."""
        return self.onward(Place(chain, 0), packet, ())

    def onward(self, start: Place, packet: Packet, stack: Stack) -> Tree:
        """Return what becomes of a packet from a rule on."""
        key = (start, packet, stack)
        if key in self._cache:
            return self._cache[key]
        if key in self._walking:
            return _loops(start.chain, packet)
        self._walking.add(key)
        tree = self._cache[key] = self._meets(start, packet, stack)
        self._walking.remove(key)
        return tree

    def walked(self, start: Place, packet: Packet, stack: Stack) -> Tree | None:
        """Return what becomes of a packet from a rule on, if that was walked already."""
        return self._cache.get((start, packet, stack))

    def into(self, chain: str, packet: Packet, stack: Stack, here: str) -> Tree:
        """Return what becomes of a packet that a rule of the chain `here` sends into a chain."""
        if chain == here or any(place.chain == chain for place in stack):
            return _loops(chain, packet)
        return self.onward(Place(chain, 0), packet, stack)

    def back(self, chain: str, packet: Packet, stack: Stack) -> Tree:
        """Return what becomes of a packet that leaves a chain at its end."""
        if not stack:
            return Leaf(FellThrough(chain), packet)
        return self.onward(stack[-1], packet, stack[:-1])


def missing(chain: str, packet: Packet) -> Tree:
    """Return what becomes of a packet that is sent into a chain that the dump lacks."""
    return Leaf(Unresolved(f"chain {chain} is not in the dump"), packet)


def _loops(chain: str, packet: Packet) -> Tree:
    # The kernel refuses chains that loop, so the dump is not what it held.
    return Leaf(Unresolved(f"chain {chain} leads back to itself"), packet)
