"""Marks by source are a mark for each address: each operation is that of a table of all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from analyzer.model.intervals import Intervals, holds, joined
from analyzer.model.packet import Mark, MarksDiffer, Packet
from analyzer.model.source_marks import SourceMarks
from tests.support.effort import examples

LAST = 12
ALL: Intervals = ((0, LAST),)
VALUES = st.integers(0, 3)
SETS = st.sets(st.integers(0, LAST)).map(lambda some: joined((n, n) for n in some))
CHANGES = st.lists(st.tuples(SETS, VALUES, VALUES), max_size=5)


def made(changes: list[tuple[Intervals, int, int]]) -> tuple[SourceMarks, dict[int, Mark]]:
    """Return marks, and the mark of each address, after changes for some addresses each."""
    marks = SourceMarks.of(ALL, Mark())
    table = {n: Mark() for n in range(LAST + 1)}
    for where, value, mask in changes:
        marks = marks.where(where, marks.with_bits(value, mask))
        table |= {n: m.with_bits(value, mask) for n, m in table.items() if holds(where, n)}
    return marks, table


@examples(100, 2_000)
@given(CHANGES)
def test_each_address_has_the_mark_of_its_own_changes(
    changes: list[tuple[Intervals, int, int]],
) -> None:
    marks, table = made(changes)
    found = {n: [m for where, m in marks.parts if holds(where, n)] for n in table}
    assert found == {n: [mark] for n, mark in table.items()}
    assert len({mark for _, mark in marks.parts}) == len(marks.parts)
    assert marks.size == sum(len(where) for where, _ in marks.parts)
    assert marks.is_joined is bool(changes)


@examples(100, 2_000)
@given(CHANGES)
def test_the_joined_mark_may_be_that_of_each_address(
    changes: list[tuple[Intervals, int, int]],
) -> None:
    marks, table = made(changes)
    for mark in table.values():
        assert (mark.value ^ marks.mark.value) & ~marks.mark.unknown == 0


@examples(60, 2_000)
@given(CHANGES, CHANGES)
def test_marks_are_equal_if_those_of_all_addresses_are(
    one: list[tuple[Intervals, int, int]], other: list[tuple[Intervals, int, int]]
) -> None:
    (marks, table), (others, other_table) = made(one), made(other)
    alike = table == other_table and marks.is_joined is others.is_joined
    assert (marks == others) is alike
    assert not alike or hash(marks) == hash(others)


def test_a_packet_has_one_mark_if_all_its_sources_have() -> None:
    same = SourceMarks.of(ALL, Mark(4))
    packet = Packet(mark=Mark(4), marks=same)
    assert packet.with_one_mark() == Packet(mark=Mark(4))
    differing = same.where(((0, 3),), same.with_bits(1, 1))
    try:
        Packet(mark=differing.mark, marks=differing).with_one_mark()
    except MarksDiffer:
        return
    raise AssertionError("it has a mark for each of two parts")
