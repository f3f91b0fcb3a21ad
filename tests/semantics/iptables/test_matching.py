from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.iptables.matches import (
    Match,
    MatchConnmark,
    MatchFragment,
    MatchNot,
    MatchProtocol,
    MatchRandom,
    MatchRecent,
    MatchUnknown,
)
from analyzer.model.iptables.options import Masked, Option
from analyzer.model.packet import UNKNOWN_PACKET, Packet
from analyzer.model.probability import ALWAYS, NEVER, Dyadic
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace
from analyzer.semantics.iptables.matching import EVALUATORS, evaluate_match, match_all
from analyzer.semantics.match_result import MatchResult
from analyzer.semantics.situation import Situation
from tests.support.match_cases import (
    BEFORE,
    BEYOND_THE_PACKET,
    CASES,
    FALSE,
    HERE,
    NODE,
    PACKET,
    TO_LOOPBACK,
    TRUE,
    TYPE_LOCAL,
    UNKNOWN,
)
from tests.support.strategies.iptables_matches import MATCHES as VALUES
from tests.support.strategies.iptables_rules import matches

ids = [f"{type(match).__name__}-{want.name}" for match, _, _, want in CASES]


@pytest.mark.parametrize(("match", "packet", "situation", "want"), CASES, ids=ids)
def test_a_match_holds_fails_or_is_unknown(
    match: Match, packet: Packet, situation: Situation, want: Ternary
) -> None:
    assert evaluate_match(match, packet, situation) == MatchResult(want)


@pytest.mark.parametrize(("match", "packet", "situation", "want"), CASES, ids=ids)
def test_a_negated_match_gives_the_opposite(
    match: Match, packet: Packet, situation: Situation, want: Ternary
) -> None:
    assert evaluate_match(MatchNot(match), packet, situation) == MatchResult(~want)


def test_every_kind_of_match_has_a_case() -> None:
    kinds = {type(match) for match, _, _, _ in CASES}
    assert set(VALUES) - kinds == {MatchRandom, MatchNot, *BEYOND_THE_PACKET}


@given(st.one_of([VALUES[kind] for kind in BEYOND_THE_PACKET]))
def test_what_stands_in_no_packet_of_ours_is_unknown(match: Match) -> None:
    assert evaluate_match(match, PACKET, NODE) == MatchResult(UNKNOWN)
    assert evaluate_match(MatchNot(match), PACKET, NODE) == MatchResult(UNKNOWN)


def test_a_rate_limiting_list_is_no_session_affinity() -> None:
    """That no affinity list holds the client says nothing of others, as an ssh rate limit's."""
    match = MatchRecent(action=Option("rcheck"), name="SSH", seconds=60, hit_count=4)
    assert evaluate_match(match, PACKET, HERE).known is UNKNOWN
    assert evaluate_match(replace(match, hit_count=None), PACKET, HERE).known is UNKNOWN


def test_a_packet_without_an_entry_has_no_mark_of_a_flow_whatever_is_asked() -> None:
    match = MatchConnmark(Masked(1, 1))
    for packet, situation in ((Packet(tracked=False), HERE), (PACKET, BEFORE)):
        assert evaluate_match(match, packet, situation).known is FALSE
        assert evaluate_match(MatchNot(match), packet, situation).known is FALSE


def test_loopback_is_local_even_where_no_local_address_is_known() -> None:
    """So the docstring of Situation says."""
    assert evaluate_match(TYPE_LOCAL, TO_LOOPBACK, HERE).known is TRUE


def test_a_random_match_is_drawn() -> None:
    quarter = MatchRandom(1 << 29)
    assert evaluate_match(quarter, UNKNOWN_PACKET, HERE) == MatchResult(TRUE, Dyadic.of(1, 2))
    assert evaluate_match(MatchNot(quarter), UNKNOWN_PACKET, HERE) == MatchResult(
        TRUE, Dyadic.of(3, 2)
    )
    assert evaluate_match(MatchRandom(0), PACKET, HERE).chance == NEVER
    assert evaluate_match(MatchRandom(1 << 31), PACKET, HERE).chance == ALWAYS


def test_the_matches_of_a_rule_are_joined() -> None:
    half, tcp, odd = MatchRandom(1 << 30), MatchProtocol("tcp"), MatchUnknown("-m u32")
    assert match_all((), PACKET, HERE) == MatchResult(TRUE)
    assert match_all((half, tcp, half), PACKET, HERE) == MatchResult(TRUE, Dyadic.of(1, 2))
    assert match_all((half, odd), PACKET, HERE) == MatchResult(UNKNOWN, Dyadic.of(1, 1))
    assert match_all((odd, half, MatchFragment()), PACKET, HERE).known is FALSE


@given(matches)
def test_what_is_known_of_a_full_packet_holds_when_less_is_known(match: Match) -> None:
    """Knowledge may only be lost, never turned around."""
    full = evaluate_match(match, PACKET, Situation(local_addresses=frozenset()))
    less = evaluate_match(match, UNKNOWN_PACKET, Situation(lists=None))
    assert less.known in (full.known, UNKNOWN)
    assert less.chance == full.chance


def test_each_kind_of_match_has_a_meaning() -> None:
    assert {*EVALUATORS, MatchRandom, MatchNot} == set(get_args(Match))
