"""Numbers of which some bits are not known say of each number they may be what it says itself."""

from __future__ import annotations

from itertools import chain, combinations
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.bits import ANY, WIDTH, Bits
from analyzer.model.ternary import Ternary

numbers = st.integers(0, 0xFF)
masked = st.builds(
    lambda value, unknown: Bits(value & ~unknown, unknown), numbers, st.integers(0, 0x3F)
)
WIDE: Final = 8


def may_be(bits: Bits) -> list[int]:
    """All numbers that it may be."""
    open_ = [1 << at for at in range(WIDE) if bits.unknown >> at & 1]
    chosen = chain.from_iterable(combinations(open_, n) for n in range(len(open_) + 1))
    return [bits.value | sum(each) for each in chosen]


def told(answers: set[bool]) -> Ternary:
    return Ternary.UNKNOWN if len(answers) > 1 else Ternary.of(answers.pop())


@given(masked, masked)
def test_what_is_computed_is_exactly_what_may_come_out(one: Bits, other: Bits) -> None:
    for found, operation in (
        (one & other, int.__and__),
        (one | other, int.__or__),
        (one ^ other, int.__xor__),
    ):
        real = {operation(a, b) for a in may_be(one) for b in may_be(other)}
        assert set(may_be(found)) == real


@given(masked, st.integers(-9, 9))
def test_what_is_shifted_loses_what_falls_out(bits: Bits, left: int) -> None:
    real = {(n << left if left >= 0 else n >> -left) & 0xFF for n in may_be(bits)}
    assert set(may_be(bits.shifted(left, WIDE))) == real


@given(masked, numbers, numbers)
def test_comparisons_are_told_where_all_numbers_agree(bits: Bits, wanted: int, mask: int) -> None:
    assert bits.equals(wanted & mask, mask) is told(
        {n & mask == wanted & mask for n in may_be(bits)}
    )
    assert bits.equals(wanted) is told({n == wanted for n in may_be(bits)})
    if wanted & ~mask:
        assert bits.equals(wanted, mask) is Ternary.FALSE


@given(masked, numbers, numbers)
def test_intervals_are_never_wrong(bits: Bits, first: int, last: int) -> None:
    # Between its least and its greatest number there may be some that it cannot be.
    real = told({first <= n <= last for n in may_be(bits)})
    assert bits.is_within(first, last) in {real, Ternary.UNKNOWN}
    if not bits.unknown:
        assert bits.is_within(first, last) is real


@given(masked)
def test_known_is_a_number_of_which_nothing_is_open(bits: Bits) -> None:
    assert bits.known == (may_be(bits)[0] if len(may_be(bits)) == 1 else None)


def test_of_anything_nothing_is_known() -> None:
    assert ANY.equals(0) is Ternary.UNKNOWN
    assert ANY.is_within(0, (1 << WIDTH) - 1) is Ternary.TRUE
    assert (ANY & Bits(6)).unknown == 6


def test_no_shift_takes_more_room_than_the_number() -> None:
    assert Bits(1).shifted(1 << 40, 32) == Bits(0)
    assert Bits(1).shifted(-(1 << 40), 32) == Bits(0)
