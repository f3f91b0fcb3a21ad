"""Faults in the order of base chains of nft, alone and beside iptables."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from analyzer.model.nft.ruleset import FAMILIES
from analyzer.model.packet import Mark
from analyzer.model.value import replace
from analyzer.semantics import base_chains, calling_order
from analyzer.semantics.calling_order import BaseChain
from analyzer.semantics.calls import Calls
from analyzer.semantics.hooks import Hooks
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import Delivered, FellThrough, Leaf
from tests.support.naive.node import HOOKS
from tests.support.nft.nodes import Question, questions
from tests.support.seeded.fault import Fault, method
from tests.support.strategies.nft_walkable import Kinds

PLAIN: Final = Kinds(all=False)


def made_as(change: Any) -> Fault:
    """Base chains are taken for others."""
    return method(
        base_chains,
        "in_order",
        lambda right: (
            lambda found: right(
                {hook: [change(chain) for chain in chains] for hook, chains in found.items()}
            )
        ),
    )


def called_as(change: Any) -> Fault:
    """What a hook calls is called in another order."""
    return method(
        base_chains,
        "in_order",
        lambda right: (
            lambda found: {
                hook: tuple(change(list(stages))) for hook, stages in right(found).items()
            }
        ),
    )


def policy_ignored(right: Any) -> Any:
    def faulty(self: Calls, stage: Any, came: Any, leaf: Leaf, *on: Any) -> Any:
        if isinstance(leaf.outcome, FellThrough):
            return self.run(on[0], leaf.packet, on[1])
        return right(self, stage, came, leaf, *on)

    return faulty


def accept_ends_the_hook(right: Any) -> Any:
    def faulty(self: Calls, stage: Any, came: Any, leaf: Leaf, *on: Any) -> Any:
        decided = not isinstance(leaf.outcome, FellThrough)
        rest, then = on
        return right(self, stage, came, leaf, () if decided else rest, then)

    return faulty


def all_of_nat_asked(right: Any) -> Any:
    def faulty(self: Calls, stage: Any, came: Any, leaf: Leaf, *on: Any) -> Any:
        back = FellThrough() if stage.is_nat and stage.policy == "ACCEPT" else leaf.outcome
        drops = type(leaf.outcome).__name__ in {"Drop", "Reject"}
        other = leaf if drops else replace(leaf, outcome=back)
        return right(self, stage, came, other, *on)

    return faulty


def tracked(right: Any) -> Any:
    return lambda self, stages, packet, then: right(
        self, stages, replace(packet, tracked=True), then
    )


def unmarked(right: Any) -> Any:
    return lambda self, stages, packet, then: right(
        self, stages, replace(packet, mark=Mark()), then
    )


def again_with_nat(_: Any) -> Any:
    def faulty(self: Hooks, packet: Any) -> Any:
        back = replace(packet, in_interface="lo", out_interface="")
        calls = self._calls
        stages = (*calls.stages["PREROUTING"], *calls.stages["INPUT"])
        return calls.run(stages, back, lambda p: Leaf(Delivered(here=True), p))

    return faulty


def place_of(name: str, place: Any) -> Fault:
    return method(BaseChain, name, lambda _: property(place))


def awake(right: Any) -> Any:
    def faulty(number: int, ruleset: Any, *rest: Any) -> Any:
        tables = {place: replace(table, flags=()) for place, table in ruleset.tables.items()}
        return right(number, replace(ruleset, tables=tables), *rest)

    return faulty


def families(**met: tuple[str, ...]) -> Fault:
    held = {family: FAMILIES - set(theirs) for family, theirs in met.items()}
    return lambda patch: patch.setattr(base_chains, "_NOT_MET", held)


def whole_rulesets_only(right: Any) -> Any:
    """Of the orders of two rulesets only those in which one comes whole before the other."""

    def faulty(rows: Any) -> Any:
        rows = [row for row in rows if row]
        return right([[each for row in rows for each in row]]) if len(rows) > 1 else right(rows)

    return faulty


FAULTS: Final[dict[str, Fault]] = {
    "policy ignored": method(Calls, "_behind", policy_ignored),
    "accept ends the hook": method(Calls, "_behind", accept_ends_the_hook),
    "nat goes on behind a translation": method(Calls, "_behind", all_of_nat_asked),
    "flows that nobody tracks meet nat": method(Calls, "run", tracked),
    "mark lost between tables": method(Calls, "run", unmarked),
    "highest priority first": called_as(lambda stages: stages[::-1]),
    "of one priority the older first": made_as(lambda c: replace(c, registered=-c.registered)),
    "chains of nat by their own priorities": place_of("called", lambda chain: chain.priority),
    "chains of nat behind all of their priority": method(
        calling_order,
        "_around",
        lambda right: (
            lambda others, nat, since: [
                (*(c for c in order if not c.is_nat), *(c for c in order if c.is_nat))
                for order in right(others, nat, since)
            ]
        ),
    ),
    "what calls nat is as old as its chain on the hook": method(
        calling_order,
        "_around",
        lambda right: (
            lambda others, nat, _: right(
                others, nat, {0: min(chain.registered for block in nat for chain in block)}
            )
        ),
    ),
    "nobody comes before conntrack": lambda patch: patch.setattr(base_chains, "_CONNTRACK", -999),
    "others than the first hooks before conntrack": lambda patch: patch.setattr(
        base_chains, "_FIRST", frozenset({"PREROUTING", "OUTPUT", "INPUT", "FORWARD"})
    ),
    "conntrack as late as mangle": lambda patch: patch.setattr(base_chains, "_CONNTRACK", -120),
    "there is an entry before conntrack": lambda patch: patch.setattr(
        base_chains, "before_conntrack", lambda situation: situation
    ),
    "dormant tables awake": method(base_chains, "_of_nft", awake),
    "tables of both families not met": families(ip=("ip",), ip6=("ip6",)),
    "tables of the other family met": families(ip=("ip", "ip6", "inet"), ip6=("ip6", "ip", "inet")),
    "nothing comes back by loopback": method(
        Hooks, "_looped", lambda _: lambda _self, packet: Leaf(Delivered(here=True), packet)
    ),
    "nat asked again on loopback": method(Hooks, "_looped", again_with_nat),
    "orders of two rulesets left out": method(calling_order, "_orders", whole_rulesets_only),
    "local taken for others": method(
        Situation, "is_local", lambda right: lambda self, packet: ~right(self, packet)
    ),
}


def at(*priorities: int, nat: bool = True, kinds: Kinds = PLAIN) -> st.SearchStrategy[Question]:
    """Chains of few priorities on the first hooks, and where sources are changed."""
    first = ("PREROUTING", "OUTPUT")
    filters = [(hook, "filter", priority) for priority in priorities for hook in first]
    nats = [(hook, "nat", -100) for hook in first] + [("POSTROUTING", "nat", 100)]
    return questions(kinds, [*filters, *(nats if nat else ())])


#: What shows a fault sooner than other questions.
ABOUT: Final = {
    "orders of two rulesets left out": questions(
        PLAIN, [(hook, "filter", -150) for hook in ("PREROUTING", "OUTPUT")], with_iptables=True
    ),
    "flows that nobody tracks meet nat": at(-300),
    "of one priority the older first": at(-50, nat=False),
    "chains of nat behind all of their priority": at(-100),
    "what calls nat is as old as its chain on the hook": at(-100),
    "conntrack as late as mangle": at(-150, nat=False, kinds=Kinds(all=False, about="Ct(")),
    "others than the first hooks before conntrack": questions(
        Kinds(all=False, about="Ct("), [(hook, "filter", -300) for hook in HOOKS]
    ),
    "there is an entry before conntrack": at(-300, kinds=Kinds(all=False, about="Ct(")),
    "nobody comes before conntrack": at(-300, nat=False, kinds=Kinds(all=False, about="Ct(")),
}
