"""Nodes with tables of nft: whole ways are those of the naive node, and bounds hold."""

from __future__ import annotations

from fractions import Fraction

from tests.support.agreement.nft_table import Forgotten
from tests.support.naive.node import Fate
from tests.support.nft.asked import ways
from tests.support.nft.nodes import Question, fate_of, may_be, must_be
from tests.support.odds import bounds


def agrees_exactly(question: Question) -> None:
    found: dict[Fate, Fraction] = {}
    for leaf, weight in ways(question.tree()):
        fate = fate_of(leaf)
        found[fate] = found.get(fate, Fraction(0)) + weight
    assert found == question.naive()


def holds_on_all_hooks(question: Question, forgot: Forgotten) -> None:
    tree = question.tree(forgot)
    for fate, share in question.naive().items():
        assert bounds(tree, must_be(fate)).lower.as_fraction() <= share
        assert share <= bounds(tree, may_be(fate)).upper.as_fraction()
