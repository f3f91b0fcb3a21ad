from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.failure.agreement import (
    FALSE_ALARM_RATE,
)
from analyzer.failure.binomial import (
    binomial_p_value,
    flows_needed,
    holm,
    noticed_deviation,
    p_value_within,
)
from analyzer.model.probability import ALWAYS, Bounds, Dyadic
from tests.support.answers import HALF


@st.composite
def draws(draw: st.DrawFn) -> tuple[int, int, float]:
    """Draw hits, trials and a probability, the hits more often than not near the mean."""
    trials = draw(st.integers(1, 20_000))
    # At a half, two counts are equally likely, but not to the last digit.
    probability = draw(st.just(0.5) | st.integers(1, 2**16 - 1).map(lambda n: n / 2**16))
    near = round(trials * probability) + draw(st.integers(-200, 200))
    anywhere = draw(st.integers(0, trials))
    return draw(st.sampled_from([max(0, min(trials, near)), anywhere])), trials, probability


@given(draws())
def test_the_p_value_is_that_of_scipy(drawn: tuple[int, int, float]) -> None:
    stats = pytest.importorskip("scipy.stats")
    hits, trials, probability = drawn
    expected = stats.binomtest(hits, trials, probability).pvalue
    assert binomial_p_value(hits, trials, probability) == pytest.approx(expected, 1e-6, 1e-200)


@pytest.mark.parametrize(("hits", "p_value"), [(0, 1.0), (1, 0.0)])
def test_what_never_happens_is_explained_by_no_hit_only(hits: int, p_value: float) -> None:
    assert binomial_p_value(hits, 10, 0.0) == p_value
    assert binomial_p_value(10 - hits, 10, 1.0) == p_value


@given(draws(), st.floats(0, 1), st.floats(0, 1))
def test_what_a_share_within_the_bounds_explains_is_not_thrown_out(
    drawn: tuple[int, int, float], below: float, above: float
) -> None:
    hits, trials, probability = drawn
    lower = floor(probability * 2**16 * below)
    upper = ceil(2**16 - (1 - probability) * 2**16 * above)
    within = p_value_within(hits, trials, Bounds(Dyadic.of(lower, 16), Dyadic.of(upper, 16)))
    exact = binomial_p_value(hits, trials, probability)
    # At the rate of false alarms, no probability within the bounds may be thrown out.
    assert within > FALSE_ALARM_RATE or exact <= FALSE_ALARM_RATE


def kept_by_definition(p_values: Sequence[float], rate: float) -> list[bool]:
    """Holm: the hypothesis of rank k falls when all p up to rank k are at most rate/(m-k)."""
    count = len(p_values)
    ranked = sorted(range(count), key=lambda i: (p_values[i], i))
    passed = [p_values[i] <= rate / (count - rank) for rank, i in enumerate(ranked)]
    return [not all(passed[: ranked.index(i) + 1]) for i in range(count)]


@given(st.lists(st.floats(0, 1) | st.floats(0, 0.05), max_size=12), st.floats(1e-9, 0.5))
def test_holm_keeps_what_its_definition_keeps(p_values: list[float], rate: float) -> None:
    assert holm(p_values, rate) == kept_by_definition(p_values, rate)


def test_holm_is_stricter_than_each_test_alone() -> None:
    assert holm([0.04, 0.03], 0.05) == [True, True]
    assert holm([0.04, 0.02], 0.05) == [False, False]


@given(
    st.integers(1, 15), st.sampled_from([0.01, 0.05, 0.2]), st.sampled_from([1e-6, 1e-10])
)  # fmt: skip
def test_as_many_flows_as_are_needed_notice_a_share_that_is_off(
    sixteenths: int, deviation: float, rate: float
) -> None:
    share = Bounds(Dyadic.of(sixteenths, 4), Dyadic.of(sixteenths, 4))
    flows = flows_needed(share, deviation, rate, 10_000_000)
    noticed = noticed_deviation(flows, share, rate)
    assert noticed is not None
    assert noticed <= deviation
    fewer = noticed_deviation(flows * 8 // 10, share, rate)
    assert fewer is None or fewer > deviation


def test_no_more_flows_are_needed_than_are_allowed() -> None:
    assert flows_needed(HALF, 0.001, 1e-6, 500) == 500
    assert flows_needed(Bounds(ALWAYS, ALWAYS), 0.2, 1e-6, 500) == 5
