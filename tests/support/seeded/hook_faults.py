"""Faults in the order of hooks and tables, and in what routing decides between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from analyzer.model.hooks import PRIORITIES, TABLES
from analyzer.model.packet import Mark, Packet
from analyzer.model.value import replace
from analyzer.semantics import base_chains, calling_order
from analyzer.semantics.calls import Calls
from analyzer.semantics.hooks import Hooks
from analyzer.semantics.iptables import traverse
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import Delivered, FellThrough, Leaf, Tree
from tests.support.seeded.fault import Fault, Patch


def tables(hook: str, *order: str) -> Fault:
    """A hook calls the tables in another order, or not all of them."""

    def faulty(patch: Patch) -> None:
        patch.setitem(TABLES, hook, order)
        for at, table in enumerate(order):
            patch.setitem(PRIORITIES, (table, hook), at)
            if table == "nat":
                patch.setitem(calling_order.NAT, hook, at)

    return faulty


def method(of: type, name: str, make: Callable[[Any], Any]) -> Fault:
    """A method does something else; `make` gets the right one."""
    return lambda patch: patch.setattr(of, name, make(getattr(of, name)))


def policy_ignored(back: Any) -> Any:
    def faulty(self: Calls, stage: Any, came: Packet, leaf: Leaf, *on: Any) -> Tree:
        if isinstance(leaf.outcome, FellThrough):
            return self.run(on[0], leaf.packet, on[1])
        found: Tree = back(self, stage, came, leaf, *on)
        return found

    return faulty


def mark_lost_between_tables(back: Any) -> Any:
    def faulty(self: Calls, stages: Any, packet: Packet, then: Any) -> Tree:
        found: Tree = back(self, stages, replace(packet, mark=Mark()), then)
        return found

    return faulty


def accept_ends_the_hook(back: Any) -> Any:
    def faulty(self: Calls, stage: Any, came: Packet, leaf: Leaf, *on: Any) -> Tree:
        rest, then = on
        others = tuple(s for s in rest if s.hook != stage.hook)
        decided = not isinstance(leaf.outcome, FellThrough)
        found: Tree = back(self, stage, came, leaf, others if decided else rest, then)
        return found

    return faulty


def untracked_flows_meet_nat(back: Any) -> Any:
    def faulty(self: Calls, stages: Any, packet: Packet, then: Any) -> Tree:
        found: Tree = back(self, stages, replace(packet, tracked=True), then)
        return found

    return faulty


def local_taken_for_others(patch: Patch) -> None:
    back = Situation.is_local
    patch.setattr(Situation, "is_local", lambda self, packet: ~back(self, packet))


def dnat_not_seen_by_routing(patch: Patch) -> None:
    patch.setattr(traverse, "translated", lambda packet, _: packet)


def entry_before_conntrack(patch: Patch) -> None:
    patch.setattr(base_chains, "before_conntrack", lambda situation: situation)


def nothing_comes_back_by_loopback(_: Any) -> Any:
    return lambda _, packet: Leaf(Delivered(here=True), packet)


def nat_asked_again_on_loopback(_: Any) -> Any:
    def faulty(self: Hooks, packet: Packet) -> Tree:
        calls = self._calls
        stages = (*calls.stages["PREROUTING"], *calls.stages["INPUT"])
        return calls.run(stages, packet, lambda p: Leaf(Delivered(here=True), p))

    return faulty


FAULTS: Final[dict[str, Fault]] = {
    "policy ignored": method(Calls, "_behind", policy_ignored),
    "accept ends the hook": method(Calls, "_behind", accept_ends_the_hook),
    "mark lost between tables": method(Calls, "run", mark_lost_between_tables),
    "untracked flows meet nat": method(Calls, "run", untracked_flows_meet_nat),
    "mangle behind nat": tables("PREROUTING", "raw", "nat", "mangle"),
    "raw behind conntrack": entry_before_conntrack,
    "filter before nat in OUTPUT": tables("OUTPUT", "raw", "mangle", "filter", "nat", "security"),
    "no filter in FORWARD": tables("FORWARD", "mangle", "security"),
    "nat before mangle in POSTROUTING": tables("POSTROUTING", "nat", "mangle"),
    "no security in INPUT": tables("INPUT", "mangle", "filter", "nat"),
    "security first in OUTPUT": tables("OUTPUT", "raw", "mangle", "nat", "security", "filter"),
    "no mangle in INPUT": tables("INPUT", "filter", "security", "nat"),
    "local taken for others": local_taken_for_others,
    "DNAT not seen by routing": dnat_not_seen_by_routing,
    "nothing comes back by loopback": method(Hooks, "_looped", nothing_comes_back_by_loopback),
    "nat asked again on loopback": method(Hooks, "_looped", nat_asked_again_on_loopback),
}
