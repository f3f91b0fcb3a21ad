"""Whole ways of packets through tables of nft, against a naive node."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings

from tests.support.naive.node import Fate
from tests.support.nft.asked import ways
from tests.support.nft.nodes import Question, fate_of, questions


def agrees_exactly(question: Question) -> None:
    found: dict[Fate, Fraction] = {}
    for leaf, weight in ways(question.tree()):
        fate = fate_of(leaf)
        found[fate] = found.get(fate, Fraction(0)) + weight
    assert found == question.naive()


@settings(max_examples=600)
@given(questions())
def test_tables_of_nft_are_called_as_the_kernel_calls_them(question: Question) -> None:
    agrees_exactly(question)
