"""Flows evaluated up to nat, without splitting them where only their marks depend on the source."""

from __future__ import annotations

from analyzer.model.intervals import Intervals
from analyzer.model.packet import MarksDiffer, Packet
from analyzer.model.region import Region
from analyzer.model.value import replace, value
from analyzer.semantics.hooks import Hooks
from analyzer.semantics.joined import are_all_sent_on, only_sent_on
from analyzer.semantics.tree import Tree


@value
class NatTree:
    """The result of raw, mangle and nat for a packet.

    Attributes:
        joined_on: the sources that rules matched on without splitting it: packets to endpoints have
            marks by source instead.
        within: the packet's own sources, if others were evaluated too.
        like: the packet as it was sent, if packets to endpoints are those of another one, which
            came in another way; None: they are its own.
    """

    tree: Tree
    joined_on: frozenset[Intervals] = frozenset()
    within: Intervals | None = None
    like: Packet | None = None


class UpToNat:
    """Evaluates packets up to nat."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        #: Whether no rule needed a mark that depends on the source.
        self._joins_marks = True

    def of(self, hook: str, packet: Packet, among: Region | None = None) -> NatTree:
        """Return the result for a packet; `among` contains its sources.

        They may be evaluated in place of these: for packets with the same sources much of the
        result is the same.
        """
        wide = packet if among is None else replace(packet, sources=among)
        for each in dict.fromkeys((wide, packet)) if self._joins_marks else ():
            try:
                tree = self._hooks.to_nat(hook, each, joins_marks=True, lends=True)
                joined_on, has_lent = self._hooks.joined_on, self._hooks.has_lent
                if packet.sources is not None and are_all_sent_on(tree):
                    like = packet if has_lent else None
                    return NatTree(tree, joined_on, packet.sources.intervals, like)
                if each is packet and has_lent:
                    tree = self._hooks.to_nat(hook, each, joins_marks=True)
            except MarksDiffer:
                self._joins_marks = False  # other flows most likely reach the same rules
                break
            found = only_sent_on(tree) if each is packet else None
            if found is not None:
                return NatTree(found, joined_on)
        return NatTree(self._hooks.to_nat(hook, packet))
