from __future__ import annotations

import pytest

from analyzer.model.iptables import matches as m
from analyzer.model.nft import expressions as e
from analyzer.semantics.nft.asks import asks, asks_affinity
from analyzer.semantics.situation import Situation

MARK, CT_MARK = e.Meta("mark"), e.Ct("mark")
FLAGS = e.Payload("tcp", "flags")


@pytest.mark.parametrize(
    ("given", "kinds"),
    [
        (MARK, {m.MatchMark}),
        (CT_MARK, {m.MatchConnmark}),
        (FLAGS, {m.MatchTcp}),
        (e.Binary("&", MARK, 1), {m.MatchMark}),
        (e.Concat((FLAGS, e.Binary("&", CT_MARK, 1))), {m.MatchTcp, m.MatchConnmark}),
        (e.Payload("tcp", "dport"), set()),
        (e.Meta("l4proto"), set()),
        (e.Ct("state"), set()),
    ],
)
def test_what_rests_on_an_assumption_is_noted(given: e.Expression, kinds: set[type]) -> None:
    assert asks(given) == kinds


def test_only_sets_that_session_affinity_keeps_ask_for_a_client() -> None:
    situation = Situation(affinity_lists=("affinity-",))
    assert asks_affinity(e.SetRef("affinity-x"), situation) == {m.MatchRecent}
    assert asks_affinity(e.SetRef("banned"), situation) == set()
    assert asks_affinity(e.Meta("mark"), situation) == set()
    assert asks_affinity(e.SetRef("affinity-x"), Situation()) == set()
