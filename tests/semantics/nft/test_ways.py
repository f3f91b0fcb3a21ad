"""Whole ways of packets through tables of nft, against a naive node."""

from __future__ import annotations

from hypothesis import given

from tests.support.agreement.nft_node import agrees_exactly
from tests.support.effort import examples
from tests.support.nft.nodes import Question, questions


@examples(30, 2_000)
@given(questions())
def test_tables_of_nft_are_called_as_the_kernel_calls_them(question: Question) -> None:
    agrees_exactly(question)
