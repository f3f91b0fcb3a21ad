"""Reuse of results: packets that differ only in fields on which a chain does not match.

Theory of operation
===================

Flows of the node itself enter nat by another hook than those that come in, and few rules behind
that tell them apart: the chains of a Service match on addresses and ports, and draw. What such a
chain does to a packet it does to any other that differs in nothing else, so it is evaluated once.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Final

from analyzer.model.intervals import Intervals
from analyzer.model.iptables.matches import (
    Match,
    MatchComment,
    MatchDestination,
    MatchMark,
    MatchNot,
    MatchProtocol,
    MatchRandom,
    MatchRecent,
    MatchSctp,
    MatchSource,
    MatchTcp,
    MatchUdp,
)
from analyzer.model.iptables.rules import Table
from analyzer.model.iptables.targets import Dnat, Drop, Goto, Jump, Return, SetMark
from analyzer.model.packet import Packet
from analyzer.model.value import fields_of, replace, value
from analyzer.semantics.effort import Effort
from analyzer.semantics.grow import Grown
from analyzer.semantics.iptables.index import keys_of
from analyzer.semantics.joined import are_all_sent_on
from analyzer.semantics.tree import Leaf, Tree, Unresolved

#: How a packet came and leaves: neither the matches below read it, nor do the targets change it.
_UNSEEN: Final = (
    "in_interface",
    "out_interface",
    "comes_from",
    "came_by",
    "leaves_by",
    "is_routed",
    "bridge_port",
    "from_node",
)
_SEEN: Final = attrgetter(*(name for name in fields_of(Packet) if name not in _UNSEEN))
_MATCHES: Final[frozenset[type]] = frozenset(
    {
        MatchComment,
        MatchDestination,
        MatchMark,
        MatchProtocol,
        MatchRandom,
        MatchRecent,
        MatchSctp,
        MatchSource,
        MatchTcp,
        MatchUdp,
    }
)
_TARGETS: Final[frozenset[type]] = frozenset({Dnat, Drop, Goto, Jump, Return, SetMark, type(None)})
#: Most results that are kept: kinds of sources come one after another for each frontend.
_MOST_KEPT: Final = 16
#: So few rules may dispatch packets: to look at all of them does not take long.
_FEW: Final = 4


def come_like(packet: Packet, other: Packet) -> Packet:
    """Return a packet that came and leaves in the way of another one."""
    return replace(packet, **{name: getattr(other, name) for name in _UNSEEN})


@value
class KeptResult:
    """The result for a packet.

    Attributes:
        joined_on: the sources that rules matched on without splitting the packet.
        is_end: whether no packet leaves the chain.
    """

    packet: Packet
    tree: Tree
    joined_on: frozenset[Intervals]
    is_end: bool

    def of(self, packet: Packet) -> Tree:
        """Return the result for another packet that is the same in all that is seen."""
        if packet is self.packet:
            return self.tree

        def come(leaf: Leaf) -> Leaf:
            if isinstance(leaf.outcome, Unresolved):
                return leaf
            return replace(leaf, packet=come_like(leaf.packet, packet), rules=())

        return Grown(come).of(self.tree)


class Unseen:
    """The results of chains of a table that do not match on how a packet came."""

    def __init__(self, table: Table, effort: Effort) -> None:
        self._table = table
        self._effort = effort
        self._closed: dict[str, bool] = {}
        self._kept: dict[tuple[object, ...], KeptResult] = {}
        self._is_inside = False

    def is_apart(self, chain: str) -> bool:
        """Return whether results of a chain are kept, and it is not entered from one like that.

        Neither the chain nor any that it leads to matches on how a packet came.
        """
        if self._is_inside:
            return False
        found = self._closed.get(chain)
        if found is None:
            found = self._closed[chain] = self._is_closed(chain, set(), set())
        return found

    def result(self, chain: str, packet: Packet, walk: Callable[[str, Packet], Tree]) -> Tree:
        """Return what a chain that `is_apart` does to a packet; `walk` evaluates it."""
        key = chain, *_SEEN(packet)
        kept = self._kept.get(key)
        if kept is None:
            before, self._effort.joined_on = self._effort.joined_on, set()
            self._is_inside = True
            try:
                tree = walk(chain, packet)
            finally:
                self._is_inside = False
                joined_on, self._effort.joined_on = frozenset(self._effort.joined_on), before
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            kept = self._kept[key] = KeptResult(packet, tree, joined_on, are_all_sent_on(tree))
        self._effort.joined_on |= kept.joined_on
        # A packet that continues has to be its own, since other rules may match on how it came.
        if not self._effort.lends or not kept.is_end:
            return kept.of(packet)
        self._effort.has_lent |= kept.packet is not packet
        return kept.tree

    def _is_closed(self, name: str, around: set[str], seen: set[str]) -> bool:
        chain = self._table.chains.get(name)
        if chain is None or name in around:
            return False  # it is not in the dump, or loops
        rules = chain.rules
        if len(rules) > _FEW and len({key for key in keys_of(rules) if any(key)}) > 1:
            return False  # it dispatches to many others, of which a packet reaches few
        around.add(name)
        for rule in rules:
            if type(rule.target) not in _TARGETS:
                return False
            for match in rule.matches:
                if type(match) not in _MATCHES and not _is_seen(match):
                    return False
            if isinstance(rule.target, Jump | Goto) and rule.target.chain not in seen:
                if not self._is_closed(rule.target.chain, around, seen):
                    return False
                seen.add(rule.target.chain)
        around.remove(name)
        return True


def _is_seen(match: Match) -> bool:
    return isinstance(match, MatchNot) and type(match.match) in _MATCHES
