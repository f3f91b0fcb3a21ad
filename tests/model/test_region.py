"""Regions are sets of addresses: each operation is that of Python's sets."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.intervals import (
    LOOPBACK,
    everything,
    joined,
)
from analyzer.model.region import Parted, Region
from analyzer.model.ternary import Ternary
from tests.support.effort import examples
from tests.support.strategies.intervals import INTERVALS, LAST, is_in_order, numbers


@examples(100, 3_000)
@given(INTERVALS, INTERVALS)
def test_a_region_is_parted_as_a_set_is(
    mine: list[tuple[int, int]], theirs: list[tuple[int, int]]
) -> None:
    region, asked = Region.of(4, mine), joined(theirs)
    if region is None:
        assert not joined(mine)
        return
    held = numbers(region.intervals)
    assert numbers(region.common(asked)) == held & numbers(asked)
    assert numbers(region.without(asked)) == held - numbers(asked)
    for number in range(LAST + 1):
        assert (IPv4Address(number) in region) is (number in held)
    if not held & numbers(asked):
        assert region.is_within(asked) is Ternary.FALSE
    elif held <= numbers(asked):
        assert region.is_within(asked) is Ternary.TRUE
    else:
        with pytest.raises(Parted) as caught:
            region.is_within(asked)
        parted = caught.value
        assert numbers(parted.inside.intervals) == held & numbers(asked)
        assert numbers(parted.outside.intervals) == held - numbers(asked)
        assert is_in_order(parted.outside.intervals)
        assert parted.inside.whole is parted.outside.whole is region


@examples(60, 1_000)
@given(INTERVALS, st.integers(0, LAST))
def test_a_region_is_at_an_address_as_it_is_within_one(
    mine: list[tuple[int, int]], number: int
) -> None:
    region = Region.of(4, mine)
    if region is None:
        return
    try:
        wanted = region.is_within(((number, number),))
    except Parted as parted:
        with pytest.raises(Parted) as caught:
            region.is_at(number)
        again = caught.value
        assert (again.asked, again.within) == (parted.asked, parted.within)  # noqa: PT017
    else:
        assert region.is_at(number) is wanted


def test_regions_of_the_same_addresses_are_equal() -> None:
    one, other = Region(4, ((1, 3), (5, 9))), Region.of(4, [(5, 9), (1, 2), (3, 3)])
    assert one == other
    assert hash(one) == hash(other)
    assert one != Region(6, ((1, 3), (5, 9)))
    assert one != Region(4, ((1, 3), (5, 8)))
    assert one != "region"


def test_an_address_of_the_other_version_is_in_no_region() -> None:
    region = Region(6, (everything(6),))
    assert IPv4Address(1) not in region
    assert LOOPBACK[6][0][0] == 1


def test_a_region_shows_its_addresses() -> None:
    assert repr(Region(4, ((1, 2),))) == "Region(0.0.0.1-0.0.0.2)"
