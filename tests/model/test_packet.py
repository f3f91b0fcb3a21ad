"""Marks of which some bits are not known, against all marks that they may be."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.packet import ALL_BITS, UNKNOWN_MARK, UNKNOWN_PACKET, Mark, Packet
from analyzer.model.ternary import Ternary
from analyzer.model.value import fields_of

words = st.integers(0, ALL_BITS)
few_bits = st.sets(st.integers(0, 31), max_size=4).map(lambda at: sum(1 << bit for bit in at))
marks = st.builds(lambda value, unknown: Mark(value & ~unknown, unknown), words, few_bits)


def possible(mark: Mark) -> set[int]:
    bits = [1 << at for at in range(32) if mark.unknown >> at & 1]
    return {
        mark.value | sum(chosen)
        for count in range(len(bits) + 1)
        for chosen in combinations(bits, count)
    }


@given(marks, words, words)
def test_a_mark_equals_what_each_of_its_meanings_equals(mark: Mark, value: int, mask: int) -> None:
    for wanted in (value, mark.value & mask):
        found = {one & mask == wanted for one in possible(mark)}
        judged = mark.equals(wanted, mask)
        assert judged is (Ternary.UNKNOWN if len(found) > 1 else Ternary.of(found.pop()))


@given(marks, words, words)
def test_bits_are_set_in_each_of_its_meanings(mark: Mark, value: int, mask: int) -> None:
    changed = mark.with_bits(value, mask)
    assert possible(changed) == {one & ~mask ^ value for one in possible(mark)}
    assert not changed.value & changed.unknown


@given(marks, marks, words, words)
def test_another_mark_is_taken_over(mark: Mark, other: Mark, mask: int, other_mask: int) -> None:
    changed = mark.with_mark(other, mask, other_mask)
    assert possible(changed) == {
        one & ~mask ^ two & other_mask for one in possible(mark) for two in possible(other)
    }


@given(marks, few_bits)
def test_a_blurred_mark_may_be_all_that_it_was(mark: Mark, bits: int) -> None:
    blurred = mark.blurred(bits)
    assert possible(blurred) >= possible(mark)
    assert blurred.unknown == mark.unknown | bits
    assert UNKNOWN_MARK.blurred(bits) == UNKNOWN_MARK


@given(marks, marks)
def test_a_mark_that_is_one_of_two_may_be_either(one: Mark, other: Mark) -> None:
    joined = one.joined(other)
    # Nearly all bits may differ: too many meanings to list.
    for word in possible(one) | possible(other):
        assert word & ~joined.unknown == joined.value
    assert joined.unknown == one.unknown | other.unknown | one.value ^ other.value


def test_nothing_is_known_of_the_unknown_packet() -> None:
    unknown = {name for name in fields_of(Packet) if getattr(UNKNOWN_PACKET, name) is None}
    # A template is put in the place of a conntrack entry by a rule that was met.
    # By a route to nowhere known no device is told. That MASQUERADE chose an address tells more.
    assert set(fields_of(Packet)) - unknown == {
        *("mark", "flow_mark", "template", "is_routed", "is_answer", "is_masquerades"),
    }
    assert UNKNOWN_PACKET.mark == UNKNOWN_PACKET.flow_mark == UNKNOWN_MARK
