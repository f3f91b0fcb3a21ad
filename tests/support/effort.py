"""How many random examples a property gets: a few in the quick check, many in the deep one.

`HYPOTHESIS_PROFILE` says which: ``quick`` (``make test``: new seeds each time), ``ci`` (the same
examples each time) or ``soak`` (``make soak``: new seeds, round after round).

Tests that take seconds say so by a mark: the quick check leaves out those that are ``deep``, and of
those whose cases are ``alike`` it takes some, others each time. CI, the soak and pytest when it is
run by hand take all of them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, TypeVar

from hypothesis import settings

T = TypeVar("T")

PROFILE: Final = os.environ.get("HYPOTHESIS_PROFILE", "quick")
#: Examples of a property that says nothing else: in the quick check, and in one round of the soak.
QUICK: Final = 12
SOAK: Final = 1_000
#: Cases that are taken of a test whose cases are slow and alike, where its mark says no number.
ALIKE: Final = 6

settings.register_profile("quick", max_examples=QUICK, deadline=None)
settings.register_profile("ci", max_examples=QUICK, deadline=None, derandomize=True)
settings.register_profile("soak", max_examples=SOAK, deadline=None, print_blob=True)


def in_quick(wanted: int) -> int:
    """Return how many of the examples that a property is worth the quick check takes."""
    return -(-wanted // 2)


def examples(quick: int, soak: int) -> settings:
    """Give a property as many random examples as it is worth its time.

    The quick check, which is to end within three minutes, takes half of the `quick` ones.
    """
    return settings(max_examples=soak if PROFILE == "soak" else in_quick(quick))


def some_of(cases: Sequence[T], number: int, seed: int) -> list[T]:
    """Return so many of the cases, as far apart as can be; with another seed others."""
    if number >= len(cases):
        return [*cases]
    first = seed % len(cases)
    return [cases[(first + at * len(cases) // number) % len(cases)] for at in range(number)]
