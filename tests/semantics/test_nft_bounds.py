"""What is not known of a packet or a node widens bounds, which hold for whatever is so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.model.nft import Table
from analyzer.semantics.nft_traverse import NftTraversal
from analyzer.semantics.tree import Leaf, bounds
from tests.semantics.test_nft_traverse import End, walked_naively
from tests.support.naive.nft import Flow
from tests.support.nft.asked import FORGOTTEN, agree, asked, forgetting, state_of, verdict_of
from tests.support.nft.nodes import Question, may_be, must_be, questions
from tests.support.strategies.nft_tables import single_tables
from tests.support.strategies.nft_walkable import Kinds

Forgotten: TypeAlias = frozenset[str]

forgotten = st.frozensets(st.sampled_from(FORGOTTEN), min_size=1, max_size=4)
ALL: Final = Kinds(counts=True)


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


@settings(max_examples=1_000)
@given(single_tables(ALL), forgotten)
def test_tables_whatever_is_so(question: tuple[Table, Flow], forgot: Forgotten) -> None:
    holds(question, forgot)


def holds_on_all_hooks(question: Question, forgot: Forgotten) -> None:
    tree = question.tree(forgot)
    for fate, share in question.naive().items():
        assert bounds(tree, must_be(fate)).lower.as_fraction() <= share
        assert share <= bounds(tree, may_be(fate)).upper.as_fraction()


#: What comes in or is made here is always known, as is that conntrack sees new flows.
of_ways = st.frozensets(
    st.sampled_from([each for each in FORGOTTEN if each not in {"devices", "flow"}]), max_size=3
)


@settings(max_examples=300)
@given(questions(ALL), of_ways)
def test_ways_whatever_is_so(question: Question, forgot: Forgotten) -> None:
    holds_on_all_hooks(question, forgot)


@given(questions(ALL, with_iptables=True), of_ways)
def test_ways_through_both_whatever_is_so(question: Question, forgot: Forgotten) -> None:
    holds_on_all_hooks(question, forgot)
