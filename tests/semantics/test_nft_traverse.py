"""Walks through one table of nft, against a naive interpreter of nft's rules."""

from __future__ import annotations

from copy import deepcopy
from fractions import Fraction
from typing import Any, TypeAlias

from hypothesis import given, settings

from analyzer.model.nft import NftRuleset, Table
from analyzer.parsers import nft_text
from analyzer.parsers.nft.rendering import render
from analyzer.semantics.nft_traverse import NftTraversal
from tests.support.naive.nft import Flow, Script, Walk, distribution
from tests.support.nft.asked import (
    as_iptables,
    asked,
    path_of,
    state_behind,
    state_of,
    tells,
    verdict_of,
    ways,
)
from tests.support.strategies.nft_tables import single_tables
from tests.support.strategies.nft_walkable import Kinds

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


@settings(max_examples=1_000)
@given(single_tables(Kinds()))
def test_what_is_known_is_told_exactly(question: tuple[Table, Flow]) -> None:
    agrees(question)


@given(single_tables(Kinds()))
def test_what_is_printed_and_read_is_walked_alike(question: tuple[Table, Flow]) -> None:
    table, flow = question
    place = table.family, table.name
    text = render(NftRuleset(tables={place: table}, input_format="nft", file="made"))
    read = nft_text.parse(text, "made").tables[place]
    ends = {
        (verdict, behind): sum(
            w for e, w in walked(read, flow).items() if e[:2] == (verdict, behind)
        )
        for verdict, behind, _ in walked(read, flow)
    }
    naive: dict[Any, Fraction] = {}
    for end, weight in walked_naively(table, flow).items():
        naive[end[:2]] = naive.get(end[:2], Fraction(0)) + weight
    assert ends == naive
