"""The distinct outcomes of a packet, each with one path that leads to it."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.model.addresses import Address
from analyzer.model.iptables.targets import Drop, Reject
from analyzer.model.probability import NEVER, Bounds
from analyzer.model.value import value
from analyzer.semantics.shares import shares
from analyzer.semantics.tree import (
    AnyRule,
    BySource,
    Chance,
    Delivered,
    Either,
    Leaf,
    OtherZone,
    OwnSource,
    PolicyDrop,
    Tree,
    Unanswered,
    Unresolved,
)


@value
class Fate:
    """How a packet ends.

    Attributes:
        kind: endpoint (sent on by DNAT), unanswered (likewise, and the answer does not come back),
            no-service (forwarded unchanged), local (the node itself), drop, reject or unresolved.
        address: where it is sent in the end, after DNAT; None if not known, or nowhere.
        how: what a reject answers; the policy that dropped it; what happens to the answer.
    """

    kind: str
    address: Address | None = None
    port: int | None = None
    how: str | None = None


@value
class PacketEnd:
    """One fate, its probability, and the rules on one of the paths to it, in order.

    Attributes:
        masquerade: whether its source is changed; None if not known, not the same on all paths, or
            if it goes nowhere.
    """

    fate: Fate
    probability: Bounds
    masquerade: bool | None
    rules: tuple[AnyRule, ...]


def _ended(by: Drop | Reject | PolicyDrop | OtherZone | OwnSource | None) -> str:
    match by:
        case None:
            return "the answer is not tracked"
        case OtherZone():
            return "the answer is in another conntrack zone than its flow"
        case OwnSource():
            return "it answers no packet from its own address"
        case PolicyDrop(table, chain, _, is_known):
            policy = "policy" if is_known else "unknown policy"
            return f"the answer is dropped by the {policy} of {chain} in table {table}"
        case Reject():
            return "the answer is rejected"
        case _:
            return "the answer is dropped"


UNRESOLVED = Fate("unresolved")


def fate_of(leaf: Leaf) -> Fate:
    """Return the fate at a leaf of a whole path."""
    packet = leaf.packet
    match leaf.outcome:
        case Drop():
            return Fate("drop")
        case PolicyDrop(table, chain, _, is_known):
            policy = "policy" if is_known else "unknown policy"
            return Fate("drop", how=f"{policy} of {chain} in table {table}")
        case Reject(how):
            return Fate("reject", how=how)
        case Unanswered(by):
            how = _ended(by)
            return Fate("unanswered", packet.destination, packet.destination_port, how)
        case Delivered(here):
            passed = "local" if here else "no-service"
            kind = "endpoint" if packet.translated and packet.destination is not None else passed
            return Fate(kind, packet.destination, packet.destination_port)
        case _:
            return UNRESOLVED


def ends(tree: Tree) -> tuple[PacketEnd, ...]:
    """Return all fates of a packet, the likeliest first."""
    found = shares(tree, fate_of)
    rules_to: dict[Fate, tuple[AnyRule, ...]] = {}
    masked: dict[Fate, set[bool | None]] = {}
    for fate, rules, leaf in ways(tree):
        rules_to[fate] = rules
        masked.setdefault(fate, set()).add(leaf.packet.masqueraded)
    known = [
        PacketEnd(fate, bounds, _agreed(fate, masked[fate]), rules_to[fate])
        for fate, bounds in found.items()
        if fate != UNRESOLVED and bounds.upper
    ]
    # Fates that differ only by kube-proxy's rounding stay in the order of the rules.
    known.sort(key=lambda end: -round(float(end.probability.upper), 4))
    open_ = found.get(UNRESOLVED) or Bounds(NEVER, found.unresolved)
    if open_.upper:
        known.append(PacketEnd(UNRESOLVED, open_, None, rules_to.get(UNRESOLVED, ())))
    return tuple(known)


def _agreed(fate: Fate, answers: set[bool | None]) -> bool | None:
    went = fate.kind in {"endpoint", "unanswered", "no-service", "local"}
    return answers.pop() if went and len(answers) == 1 else None


def ways(tree: Tree) -> Iterator[tuple[Fate, tuple[AnyRule, ...], Leaf]]:
    """Yield each leaf's fate with the rules on a path there, later rules' leaves first."""
    seen: set[int] = set()
    found: list[tuple[Fate, tuple[AnyRule, ...], Leaf]] = []
    rest: list[tuple[Tree, tuple[AnyRule, ...]]] = [(tree, ())]
    while rest:
        each, before = rest.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        rules = (*before, *each.rules)
        match each:
            case Leaf(Unresolved()):
                found.append((UNRESOLVED, rules, each))
            case Leaf():
                found.append((fate_of(each), rules, each))
            case Chance(branches):
                rest += [(child, rules) for _, child in reversed(branches)]
            case Either(_, branches):
                rest += [(child, rules) for child in reversed(branches)]
            case BySource(_, parts):
                rest += [(child, rules) for _, child in reversed(parts)]
    yield from reversed(found)
