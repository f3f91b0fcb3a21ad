from __future__ import annotations

import json
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.probability import (
    ALWAYS,
    NEVER,
    XT_STATISTIC_BITS,
    Bounds,
    Dyadic,
    numgen_weights,
)
from analyzer.reports.json_distributions import (
    Distributions,
    distribution,
    draws_of,
    shares_of,
)
from tests.support.json_reader import shares as read_shares

HALF, QUARTER = Dyadic.of(1, 1), Dyadic.of(1, 2)
#: Of a draw; 1 too, behind which nothing is left.
THRESHOLDS = st.one_of(
    st.integers(0, 1 << XT_STATISTIC_BITS),
    st.sampled_from([0, 1, 1 << 30, (1 << XT_STATISTIC_BITS) - 1, 1 << XT_STATISTIC_BITS]),
)


def drawn(thresholds: list[int], *, rest: bool) -> list[Dyadic]:
    """The shares of draws one after the other, by the arithmetic of `Dyadic`."""
    found, left = [], ALWAYS
    for threshold in thresholds:
        chance = Dyadic.of(threshold, XT_STATISTIC_BITS)
        found.append(left * chance)
        left = left * ~chance
    return [*found, left] if rest else found


def exactly(shares: list[Dyadic]) -> list[Bounds]:
    return [Bounds(share, share) for share in shares]


def kube_proxy(size: int) -> list[Dyadic]:
    return drawn([round((1 << 31) / (size - at)) for at in range(size - 1)], rest=True)


@given(st.lists(THRESHOLDS, max_size=12), st.booleans(), st.randoms())
def test_what_is_written_is_read_as_the_same_shares(
    thresholds: list[int], rest: bool, chance: random.Random
) -> None:
    shares = drawn(thresholds, rest=rest)
    chance.shuffle(shares)
    told = json.loads(json.dumps(distribution(exactly(shares), None, len(shares))))
    wanted = [(share.as_fraction(), share.as_fraction()) for share in shares]
    assert read_shares(told) == wanted
    assert told["values"] == [float(share) for share in shares]


@given(st.lists(st.integers(1, (1 << XT_STATISTIC_BITS) - 1), max_size=12), st.randoms())
def test_draws_are_found_in_whatever_order_their_shares_stand(
    thresholds: list[int], chance: random.Random
) -> None:
    shares = drawn(thresholds, rest=True)
    chance.shuffle(shares)
    found = draws_of(shares)
    assert found is not None
    assert [shares[at] for at in found.order] == drawn([*found.thresholds], rest=True)


def test_draws_of_which_the_last_takes_what_is_left_are_one_fewer() -> None:
    found = draws_of([HALF, HALF])
    assert found is not None
    assert found.thresholds == (1 << 30,)
    found = draws_of([HALF, QUARTER])  # a chain that has lost its last rule
    assert found is not None
    assert found.thresholds == (1 << 30, 1 << 30)


@pytest.mark.parametrize("size", [5, 6, 7, 10, 1_000])
def test_shares_that_no_draws_give_are_written_themselves(size: int) -> None:
    weights = list(numgen_weights(size))
    assert draws_of(weights) is None
    told = distribution(exactly(weights), None, size)
    assert read_shares(told) == [(w.as_fraction(), w.as_fraction()) for w in weights]


def test_a_share_that_is_off_by_its_last_bit_is_not_taken_for_a_draw() -> None:
    shares = kube_proxy(3)
    off = Dyadic.of(shares[1].numerator + 1, shares[1].exponent)
    told = distribution(exactly([shares[0], off, shares[2]]), None, 3)
    assert "shares" in told["exact"]
    assert read_shares(told)[1] == (off.as_fraction(), off.as_fraction())


def test_bounds_stand_beside_what_is_not_known() -> None:
    told = distribution([Bounds(NEVER, HALF), Bounds(HALF, HALF)], [2, 0], 3, QUARTER)
    assert told["values"] == [0.5, None, None]
    assert (told["lower"], told["upper"]) == ([0.5, None, 0.0], [0.5, None, 0.5])
    half = Fraction(1, 2)
    assert read_shares(told) == [(half, half), None, (Fraction(0), half)]
    assert told["unresolved"] == {"numerator": "0x1", "exponent": 2, "value": 0.25}


def test_who_is_never_drawn_is_null_and_not_in_the_order() -> None:
    told = distribution(exactly([HALF, HALF]), [2, 0], 3)
    assert told["values"] == [0.5, None, 0.5]
    assert told["order"] == [2, 0]
    half = Fraction(1, 2)
    assert read_shares(told) == [(half, half), None, (half, half)]


def test_nobody_drawn_is_no_draw() -> None:
    told = distribution([], [], 2)
    assert (told["exact"], read_shares(told)) == ({"shares": [None, None]}, [None, None])


@pytest.mark.parametrize(
    ("thresholds", "size"), [([], 2), ([1, 1], 1), ([], 0), ([-1], 2), ([(1 << 31) + 1], 2)]
)
def test_draws_that_cannot_be_are_refused(thresholds: list[int], size: int) -> None:
    with pytest.raises(ValueError, match=r"draws cannot be of|is not between"):
        shares_of(thresholds, size)


def test_the_text_grows_with_the_endpoints_not_with_their_square() -> None:
    some, many = (
        len(json.dumps(distribution(exactly(kube_proxy(size)), None, size))) for size in (100, 500)
    )
    assert many < 6 * some


def test_equal_distributions_are_written_once() -> None:
    writer = Distributions()
    sizes = (4, 5, 4, 5, 6)
    numbers = [writer.number(exactly(kube_proxy(size)), None, size) for size in sizes]
    assert numbers == [0, 1, 0, 1, 2]
    assert len([*writer.written()]) == 3


def test_places_in_order_are_all_places() -> None:
    writer, shares = Distributions(), exactly(kube_proxy(3))
    assert writer.number(shares, None, 3) == writer.number(shares, [0, 1, 2], 3)


def test_distributions_that_differ_in_anything_are_not_taken_for_one_another() -> None:
    writer, shares = Distributions(), exactly([HALF, HALF])
    asked: list[tuple[list[int] | None, int, Dyadic]] = [
        (None, 2, NEVER),
        ([1, 0], 2, NEVER),
        ([0, 2], 3, NEVER),
        (None, 2, QUARTER),
    ]
    for _ in range(2):
        assert [writer.number(shares, *each) for each in asked] == [0, 1, 2, 3]
    told = [json.loads(each) for each in writer.written()]
    assert told == [distribution(shares, *each) for each in asked]


def test_what_is_given_up_for_room_keeps_its_number() -> None:
    writer = Distributions(most_kept=20_000)
    lists = [exactly(kube_proxy(300 + at)) for at in range(6)]
    for _ in range(2):
        assert [writer.number(each, None, len(each)) for each in lists] == [*range(6)]
    assert sum(map(len, writer.written())) > 2 * 20_000
