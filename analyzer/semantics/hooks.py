"""The order in which a packet meets the base chains of the tables.

So far the nat table's: where a new flow is sent, and whether its source is changed.

Source: Linux, include/uapi/linux/netfilter_ipv4.h, ``nf_ip_hook_priorities``.
"""

from __future__ import annotations

from analyzer.model.packet import Packet
from analyzer.model.probability import ALWAYS
from analyzer.model.rules import Ruleset
from analyzer.model.targets import Masquerade, Snat
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.situation import Situation
from analyzer.semantics.traverse import Traversal
from analyzer.semantics.tree import FellThrough, Leaf, Tree, bounds


class NatHooks:
    """The nat table of one node, seen by the first packets of flows."""

    def __init__(self, ruleset: Ruleset, situation: Situation) -> None:
        self._table = ruleset.tables.get("nat")
        self._situation = situation
        self._traversal = Traversal(self._table, situation) if self._table else None

    def walk(self, hook: str, packet: Packet) -> Tree:
        """Return what the nat chain of `hook` (PREROUTING, OUTPUT, ...) makes of `packet`."""
        if self._traversal is None or self._table is None or hook not in self._table.chains:
            return Leaf(FellThrough(hook), packet)
        return self._traversal.tree(hook, packet)

    def masquerades(self, packet: Packet) -> Ternary:
        """Tell whether a packet on its way out, after DNAT, gets another source address."""
        # By which device it leaves is settled by a route that we do not see.
        leaving = replace(packet, in_interface=None, out_interface=None)
        tree = self.walk("POSTROUTING", leaving)
        found = bounds(tree, lambda leaf: isinstance(leaf.outcome, Masquerade | Snat))
        if not found.upper:
            return Ternary.FALSE
        # A packet for the node itself goes to INPUT and never meets POSTROUTING.
        leaves = ~self._is_local(packet)
        return leaves if found.lower == ALWAYS else leaves & Ternary.UNKNOWN

    def _is_local(self, packet: Packet) -> Ternary:
        return self._situation.is_local(packet.destination)
