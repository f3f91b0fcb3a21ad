"""Rates of eviction: the states of a zone, and how long a node waits, against a played limiter."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.workloads import NodeFacts
from analyzer.outage.clocks import ANY_TIME, NEVER, TimeBounds
from analyzer.outage.eviction import Rates, ZoneState, rate, waits, zone_state

RATES = Rates()


def nodes(number: int, zone: str = "", *, counts: bool = True) -> dict[str, NodeFacts]:
    facts = NodeFacts(zone=zone, may_be_deleted=False, counts=counts, kubelet=None)
    return {f"{zone or 'n'}{n}": facts for n in range(number)}


@pytest.mark.parametrize(
    ("unhealthy", "total", "state"),
    [
        (0, 10, ZoneState.NORMAL),
        (1, 1, ZoneState.FULL),
        (2, 3, ZoneState.NORMAL),  # at least three
        (3, 5, ZoneState.PARTIAL),
        (11, 20, ZoneState.PARTIAL),  # just 55 %
        (10, 20, ZoneState.NORMAL),
        (54, 100, ZoneState.NORMAL),
        (55, 100, ZoneState.PARTIAL),
        (100, 100, ZoneState.FULL),
    ],
)
def test_states_of_a_zone(unhealthy: int, total: int, state: ZoneState) -> None:
    assert zone_state(unhealthy, total, RATES) is state


@pytest.mark.parametrize(
    ("state", "total", "wanted"),
    [
        (ZoneState.NORMAL, 10, Fraction(1, 10)),
        (ZoneState.FULL, 10, Fraction(1, 10)),
        (ZoneState.PARTIAL, 50, Fraction(0)),
        (ZoneState.PARTIAL, 51, Fraction(1, 100)),
    ],
)
def test_rates_of_a_zone(state: ZoneState, total: int, wanted: Fraction) -> None:
    assert rate(state, total, RATES) == wanted


def test_one_node_of_ten_waits_for_a_token_or_two() -> None:
    (span,) = waits(["n0"], nodes(10), RATES).values()
    assert span == TimeBounds(Fraction(0), Fraction(20))


def test_a_small_zone_that_is_unhealthy_may_give_up_none() -> None:
    found = waits(["n0", "n1", "n2"], nodes(5), RATES)
    assert {(each.earliest, each.latest) for each in found.values()} == {(Fraction(0), None)}


def test_a_large_one_does_so_slowly() -> None:
    found = waits([f"n{n}" for n in range(60)], nodes(100), RATES)
    assert {each.latest for each in found.values()} == {Fraction(6100)}


def test_a_zone_that_is_gone_is_given_up_at_the_normal_rate_while_others_live() -> None:
    both = {**nodes(4, "a"), **nodes(4, "b")}
    found = waits([*nodes(4, "a")], both, RATES)
    assert {each.latest for each in found.values()} == {Fraction(50)}


def test_with_no_node_left_none_is() -> None:
    assert set(waits([*nodes(4)], nodes(4), RATES).values()) == {NEVER}
    excluded = {**nodes(4), **nodes(1, "x", counts=False)}
    assert set(waits([*nodes(4)], excluded, RATES).values()) == {NEVER}


def test_a_node_that_no_object_tells_of_waits_for_any_time() -> None:
    assert waits(["z"], nodes(3), RATES) == {"z": ANY_TIME}
    assert waits(["z"], {}, RATES) == {"z": ANY_TIME}


@given(st.integers(1, 40), st.booleans(), st.fractions(0, 1, max_denominator=50))
def test_no_node_waits_longer_than_a_limiter_lets_it(
    dead: int, drained: bool, part: Fraction
) -> None:
    """A token bucket of one, refilled at the rate, that begins full, drained or in between."""
    total = 2 * dead + 3  # fewer than 55 %
    level, now = (Fraction(0) if drained else part), Fraction(0)
    each = RATES.normal
    last = waits([f"n{n}" for n in range(dead)], nodes(total), RATES)["n0"].latest
    assert last is not None
    for _ in range(dead):
        now += max(Fraction(0), 1 - level) / each
        level = Fraction(0)
    assert now <= last
