"""Intervals of a few numbers, and the sets that they are."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from hypothesis import strategies as st

from analyzer.model.intervals import Intervals

#: The greatest number.
LAST: Final = 40
NUMBERS: Final = st.integers(0, LAST)
INTERVALS: Final = st.lists(st.tuples(NUMBERS, NUMBERS), max_size=6)


def numbers(intervals: Intervals) -> set[int]:
    """Return all numbers in some intervals."""
    return {number for first, last in intervals for number in range(first, last + 1)}


def is_in_order(intervals: Intervals) -> bool:
    """Return whether no two intervals overlap or touch, and each is behind the one before."""
    ends = [end for interval in intervals for end in interval]
    touching = any(b[0] == a[1] + 1 for a, b in pairwise(intervals))
    return ends == sorted(ends) and not touching
