"""Whole ways through iptables' tables: they are those of the naive interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from analyzer.model.addresses import Address
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.iptables.targets import Drop, Reject
from analyzer.model.packet import ALL_BITS, Packet
from analyzer.model.probability import ALWAYS, Bounds
from analyzer.semantics.hooks import Hooks
from analyzer.semantics.situation import Situation
from analyzer.semantics.tree import Delivered, Leaf, PolicyDrop, Tree
from tests.support.naive import hooks as naive
from tests.support.naive.table import Start, explored, reachable
from tests.support.odds import bounds, leaves
from tests.support.strategies.iptables_tables import NODE, POD, PORT, SERVICE

OWN: Final = frozenset({NODE})
FATES: Final = (
    naive.Fate("drop"),
    naive.Fate("reject"),
    *[
        naive.Fate(kind, address, masked)
        for kind, address in (("here", NODE), ("sent", POD), ("sent", SERVICE))
        for masked in (False, True)
    ],
)


def way(ruleset: Ruleset, destination: Address, *, made_here: bool, bits: int = ALL_BITS) -> Tree:
    """Return the tree of a flow, of whose marks rules match on `bits`."""
    packet = Packet(
        protocol="tcp",
        source=NODE if made_here else POD,
        source_port=40_000,
        destination=destination,
        destination_port=PORT,
        in_interface="" if made_here else None,
    )
    situation = Situation(local_addresses=OWN, flow=packet)
    return Hooks([ruleset], ruleset.family, situation, asked_bits=lambda: bits).way(packet)


def told(leaf: Leaf) -> naive.Fate:
    packet = leaf.packet
    marks = packet.mark.value, packet.flow_mark.value
    match leaf.outcome:
        case Drop() | PolicyDrop():
            return naive.Fate("drop", marks=marks)
        case Reject():
            return naive.Fate("reject", marks=marks)
        case Delivered(here):
            kind = "here" if here else "sent"
            return naive.Fate(kind, packet.destination, bool(packet.masqueraded), marks)
        case _:
            raise AssertionError(leaf)


def start(ruleset: Ruleset, destination: Address, *, made_here: bool) -> Start[naive.Fate]:
    return lambda script: naive.Walk(ruleset, OWN, destination, script).fate(made_here=made_here)


def check_exactly(ruleset: Ruleset, destination: Address, *, made_here: bool) -> None:
    found: dict[naive.Fate, Fraction] = {}
    for leaf, weight in leaves(way(ruleset, destination, made_here=made_here), ALWAYS):
        fate = told(leaf)
        found[fate] = found.get(fate, Fraction(0)) + weight.as_fraction()
    assert found == explored(start(ruleset, destination, made_here=made_here))


def bounds_of(tree: Tree) -> Mapping[naive.Fate, Bounds]:
    """Return how often the flow comes to each end, of those that can be seen from outside."""
    return {
        fate: bounds(tree, lambda leaf, fate=fate: told(leaf).seen == fate)  # type: ignore[misc]  # a default binds it
        for fate in FATES
    }


def check_bounds(ruleset: Ruleset, destination: Address, *, made_here: bool) -> None:
    """Whatever the unknown does, the flow comes to each end within the bounds."""
    tree = way(ruleset, destination, made_here=made_here)
    begin = start(ruleset, destination, made_here=made_here)
    for fate, share in bounds_of(tree).items():
        least, most = reachable(begin, lambda f, fate=fate: f.seen == fate)  # type: ignore[misc]  # a default binds it
        assert share.lower.as_fraction() <= least
        assert most <= share.upper.as_fraction()
