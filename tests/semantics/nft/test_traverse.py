"""Walks through one table of nft, against a naive interpreter of nft's rules."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import given

from analyzer.model.nft.ruleset import NftRuleset, Table
from analyzer.parsers import nft_text
from analyzer.parsers.nft.rendering import render
from tests.support.agreement.nft_table import agrees, walked, walked_naively
from tests.support.effort import examples
from tests.support.naive.nft import Flow
from tests.support.strategies.nft_tables import single_tables
from tests.support.strategies.nft_walkable import Kinds


@examples(40, 3_000)
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
