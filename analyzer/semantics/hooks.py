"""The order in which a packet meets the base chains of the tables.

So far as far as the nat table: where a new flow is sent, and whether its source is changed. Before
it come raw, which can keep a flow out of conntrack and so out of nat, and mangle, which can mark
or drop it.

Source: Linux, include/uapi/linux/netfilter_ipv4.h, ``nf_ip_hook_priorities``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, assert_never

from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS
from analyzer.model.rules import Ruleset
from analyzer.model.targets import Accept, Masquerade, Snat
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.situation import Situation
from analyzer.semantics.traverse import Traversal
from analyzer.semantics.tree import Chance, Either, FellThrough, Leaf, Tree, bounds

#: The tables of each hook up to nat.
_TABLES: Final = {
    "PREROUTING": ("raw", "mangle", "nat"),
    "OUTPUT": ("raw", "mangle", "nat"),
    "POSTROUTING": ("nat",),
}


class NatHooks:
    """The way of the first packets of flows to the nat table of one node, and through it.

    `changed_bits` are those of the mark that tables between DNAT and POSTROUTING may change.
    """

    def __init__(self, ruleset: Ruleset, situation: Situation, *, changed_bits: int = 0) -> None:
        self._situation = situation
        self._changed_bits = changed_bits
        self._traversals = {
            name: Traversal(table, situation)
            for name, table in ruleset.tables.items()
            if name in _TABLES["PREROUTING"]
        }
        self._has_rules = {
            (name, hook)
            for name in self._traversals
            for hook in _TABLES
            if hook in ruleset.tables[name].chains and len(ruleset.tables[name].chains[hook].rules)
        }

    def walk(self, hook: str, packet: Packet) -> Tree:
        """Return what the chains of `hook` (PREROUTING, OUTPUT, ...) up to nat do to `packet`."""
        return self._from(_TABLES[hook], hook, packet)

    def before_nat(self, hook: str, packet: Packet) -> Tree:
        """Return what the chains of `hook` before nat do to `packet`."""
        return self._from(_TABLES[hook][:-1], hook, packet)

    def _from(self, tables: tuple[str, ...], hook: str, packet: Packet) -> Tree:
        for at, name in enumerate(tables):
            if (name, hook) not in self._has_rules:
                continue
            tree = self._traversals[name].tree(hook, packet)
            return self._and_then(tree, tables[at + 1 :], hook)
        return Leaf(FellThrough(hook), packet)

    def _and_then(self, tree: Tree, rest: tuple[str, ...], hook: str) -> Tree:
        return _grown(tree, lambda leaf: self._behind(leaf, rest, hook)) if rest else tree

    def _behind(self, leaf: Leaf, rest: tuple[str, ...], hook: str) -> Tree:
        """Return what becomes of a packet that one table is done with."""
        if not isinstance(leaf.outcome, Accept | FellThrough):
            return leaf
        if rest[-1] != "nat" or leaf.packet.tracked:
            return self._from(rest, hook, leaf.packet)
        # What conntrack does not see passes nat by; the tables between still see it.
        past = self._from(rest[:-1], hook, leaf.packet)
        if leaf.packet.tracked is False:
            return past
        return Either(
            "whether conntrack sees the flow", (past, self._from(rest, hook, leaf.packet))
        )

    def masquerades(self, packet: Packet) -> Ternary:
        """Tell whether a packet on its way out, after DNAT, gets another source address."""
        # By which device it leaves is settled by a route that we do not see.
        leaving = replace(
            packet,
            mark=packet.mark.blurred(self._changed_bits),
            in_interface=None,
            out_interface=None,
        )
        tree = self.walk("POSTROUTING", leaving)
        found = bounds(tree, lambda leaf: isinstance(leaf.outcome, Masquerade | Snat))
        if not found.upper:
            return Ternary.FALSE
        # A packet for the node itself goes to INPUT and never meets POSTROUTING.
        leaves = ~self._is_local(packet)
        return leaves if found.lower == ALWAYS else leaves & Ternary.UNKNOWN

    def _is_local(self, packet: Packet) -> Ternary:
        return self._situation.is_local(packet.destination)


def _grown(tree: Tree, grow: Callable[[Leaf], Tree]) -> Tree:
    """Return `tree` with what `grow` makes of each leaf in its place, its rules kept.

    Branches that share what is below them still do.
    """
    done: dict[int, Tree] = {}

    def of(each: Tree) -> Tree:
        found = done.get(id(each))
        if found is None:
            found = done[id(each)] = grown(each)
        return found

    def grown(each: Tree) -> Tree:
        match each:
            case Leaf():
                behind = grow(each)
                if behind is each:
                    return each
                return replace(behind, rules=(*each.rules, *behind.rules))
            case Chance(branches):
                return replace(each, branches=tuple([(w, of(child)) for w, child in branches]))
            case Either(_, branches):
                return replace(each, branches=tuple([of(child) for child in branches]))
            case _:
                assert_never(each)

    return of(tree)
