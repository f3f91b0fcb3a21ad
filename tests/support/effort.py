"""How many random examples a property gets: a few in the quick check, many in the deep one.

`HYPOTHESIS_PROFILE` says which: ``quick`` (``make test``: new seeds each time), ``ci`` (the same
examples each time) or ``soak`` (``make soak``: new seeds, round after round).
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


def some_of(cases: Sequence[T], number: int) -> list[T]:
    """Return some of the cases that are slow and alike, as far apart as can be; CI takes them all.

    The quick check, which is to end within three minutes, takes so many.
    """
    if PROFILE != "quick" or number >= len(cases):
        return [*cases]
    return [cases[at * len(cases) // number] for at in range(number)]
