from __future__ import annotations

import pytest

from analyzer.model.distribution import Distribution
from analyzer.model.probability import ALWAYS, NEVER, Dyadic

HALF, QUARTER = Dyadic.of(1, 1), Dyadic.of(1, 2)


@pytest.mark.parametrize("weights", [{}, {"a": HALF}, {"a": HALF, "b": QUARTER}])
def test_weights_that_do_not_sum_to_1_are_refused(weights: dict[str, Dyadic]) -> None:
    with pytest.raises(ValueError, match="not 1"):
        Distribution(weights)


def test_weights_of_equal_outcomes_are_added() -> None:
    found = Distribution.collect([("a", QUARTER), ("b", HALF), ("a", QUARTER)])
    assert found.weights == {"a": HALF, "b": HALF}


def test_an_outcome_that_never_happens_is_left_out() -> None:
    assert Distribution.collect([("a", ALWAYS), ("b", NEVER)]).weights == {"a": ALWAYS}


def test_an_outcome_may_be_added_up_in_parts_too_small_for_a_float() -> None:
    least = Dyadic.of(1, 2_000)
    found = Distribution.collect([("a", ~least), ("b", least)])
    assert found.weights["b"] == least
    with pytest.raises(ValueError, match="not 1"):
        Distribution({"a": ~least})
