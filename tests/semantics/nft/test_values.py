from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.nft import names
from analyzer.model.probability import ALWAYS, NEVER, Dyadic
from analyzer.model.ternary import Ternary
from analyzer.semantics.nft.values import Draw, Type
from tests.support.effort import examples

WORDS = 1 << 32


def drawn(number: int, modulus: int) -> int:
    """Count the random words that reciprocal_scale() makes `number` of."""

    def below(edge: int) -> int:
        """Count those that give less than `edge`, by bisection."""
        low, high = 0, WORDS
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if middle * modulus >> 32 >= edge else (middle + 1, high)
        return low

    return below(number + 1) - below(number)


@examples(60, 2_000)
@given(st.integers(1, WORDS), st.data())
def test_a_number_is_drawn_as_often_as_the_kernel_scales_a_word_to_it(
    modulus: int, data: st.DataObject
) -> None:
    number = data.draw(st.integers(0, modulus - 1))
    offset = data.draw(st.integers(0, 10))
    chance = Draw(modulus, offset).chance(number + offset, number + offset)
    assert chance == Dyadic.of(drawn(number, modulus), 32)


@pytest.mark.parametrize("modulus", [1, 2, 3, 7, 1_000])
def test_the_numbers_of_a_draw_take_all_of_the_flows(modulus: int) -> None:
    draw = Draw(modulus, 5)
    each = [draw.chance(n, n) for n in range(5, 5 + modulus)]
    assert sum(each, NEVER) == ALWAYS
    assert draw.chance(5, 4 + modulus) == draw.chance(0, 2_000) == ALWAYS


@pytest.mark.parametrize(("first", "last"), [(0, 4), (8, 99), (6, 5)])
def test_numbers_outside_a_draw_never_come(first: int, last: int) -> None:
    assert Draw(3, 5).chance(first, last) == NEVER


def test_a_range_is_drawn_as_often_as_its_numbers() -> None:
    draw = Draw(7)
    assert draw.chance(2, 4) == sum((draw.chance(n, n) for n in (2, 3, 4)), NEVER)


@pytest.mark.parametrize(
    ("local", "is_local", "is_unicast"),
    [
        (Ternary.TRUE, Ternary.TRUE, Ternary.FALSE),
        # An address of somebody else may be of any other type.
        (Ternary.FALSE, Ternary.FALSE, Ternary.UNKNOWN),
        (Ternary.UNKNOWN, Ternary.UNKNOWN, Ternary.UNKNOWN),
    ],
)
def test_only_whether_an_address_is_the_nodes_own_is_known_of_its_type(
    local: Ternary, is_local: Ternary, is_unicast: Ternary
) -> None:
    held = Type(local, ip_address("10.0.0.1"), lambda _: None)
    assert held.equals(names.ADDRESS_TYPES["local"]) is is_local
    assert held.equals(names.ADDRESS_TYPES["unicast"]) is is_unicast
