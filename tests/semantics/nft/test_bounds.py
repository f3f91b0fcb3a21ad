"""What is not known of a packet or a node widens bounds, which hold for whatever is so."""

from __future__ import annotations

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.nft.ruleset import Table
from tests.support.agreement.nft_node import holds_on_all_hooks
from tests.support.agreement.nft_table import Forgotten, holds
from tests.support.effort import examples
from tests.support.naive.nft import Flow
from tests.support.nft.asked import FORGOTTEN
from tests.support.nft.nodes import Question, questions
from tests.support.strategies.nft_tables import single_tables
from tests.support.strategies.nft_walkable import Kinds

forgotten = st.frozensets(st.sampled_from(FORGOTTEN), min_size=1, max_size=4)
ALL: Final = Kinds(counts=True)


@examples(30, 2_000)
@given(single_tables(ALL), forgotten)
def test_tables_whatever_is_so(question: tuple[Table, Flow], forgot: Forgotten) -> None:
    holds(question, forgot)


#: What comes in or is made here is always known, as is that conntrack sees new flows.
of_ways = st.frozensets(
    st.sampled_from([each for each in FORGOTTEN if each not in {"devices", "flow"}]), max_size=3
)


@examples(20, 1_000)
@given(questions(ALL), of_ways)
def test_ways_whatever_is_so(question: Question, forgot: Forgotten) -> None:
    holds_on_all_hooks(question, forgot)


@given(questions(ALL, with_iptables=True), of_ways)
def test_ways_through_both_whatever_is_so(question: Question, forgot: Forgotten) -> None:
    holds_on_all_hooks(question, forgot)
