"""One table of nft: its walk is that of the naive interpreter, and its bounds hold."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from fractions import Fraction
from typing import Any, TypeAlias

from analyzer.model.nft.ruleset import Table
from analyzer.semantics.nft.traverse import NftTraversal
from analyzer.semantics.tree import Leaf
from tests.support.naive.draws import Script, distribution
from tests.support.naive.nft import Flow, Walk
from tests.support.nft.asked import (
    agree,
    as_iptables,
    asked,
    forgetting,
    path_of,
    state_behind,
    state_of,
    tells,
    verdict_of,
    ways,
)
from tests.support.odds import bounds

#: What is forgotten of a packet and its node, by the names in `asked`.
Forgotten: TypeAlias = frozenset[str]
#: A verdict, the packet behind it, and the rules on the way.
End: TypeAlias = tuple[Any, Any, Any]


def walked(table: Table, flow: Flow) -> dict[End, Fraction]:
    packet, situation = asked(flow)
    found: dict[End, Fraction] = {}
    for leaf, weight in ways(NftTraversal(table, flow.family, situation).tree("base0", packet)):
        end = verdict_of(leaf), state_of(leaf.packet), path_of(leaf)
        found[end] = found.get(end, Fraction(0)) + weight
    return found


def walked_naively(table: Table, flow: Flow) -> dict[End, Fraction]:
    telling = {rule.raw for chain in table.chains.values() for rule in chain.rules if tells(rule)}

    def start(script: Script) -> End:
        walk = Walk(table, deepcopy(flow), script)
        verdict = walk.base("base0")
        path = tuple([raw for raw in walk.path if raw in telling])
        return as_iptables(verdict, flow.family), state_behind(walk.flow, verdict), path

    return distribution(start)


def agrees(question: tuple[Table, Flow]) -> None:
    assert walked(*question) == walked_naively(*question)


def _compares(end: End, *, certainly: bool) -> Callable[[Leaf], bool]:
    """Whether a leaf may stand for an end, or certainly does."""
    verdict, (mark, flow_mark, *behind), _ = end
    is_redirected = verdict.how == ("redirect",)

    def compared(leaf: Leaf) -> bool:
        said: tuple[Any, ...] = state_of(leaf.packet)[2:]
        if verdict_of(leaf) != verdict:
            return False
        packet = leaf.packet
        if not agree((packet.mark, packet.flow_mark), (mark.value, flow_mark.value)):
            return False
        pairs = list(zip(said, behind, strict=True))
        if any(one is not None and one != real for one, real in pairs):
            return False
        known = is_redirected or None not in said
        return not certainly or (known and not packet.mark.unknown | packet.flow_mark.unknown)

    return compared


def holds(question: tuple[Table, Flow], forgot: Forgotten) -> None:
    table, flow = question
    packet, situation = forgetting(*asked(flow), forgot)
    tree = NftTraversal(table, flow.family, situation).tree("base0", packet)
    found: dict[Any, Any] = {}
    for (verdict, behind, _), share in walked_naively(table, flow).items():
        found[verdict, behind] = found.get((verdict, behind), 0) + share
    for (verdict, behind), share in found.items():
        end = verdict, behind, ()
        assert bounds(tree, _compares(end, certainly=True)).lower.as_fraction() <= share
        assert share <= bounds(tree, _compares(end, certainly=False)).upper.as_fraction()
