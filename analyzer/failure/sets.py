"""Which sets of three nodes or more are worth evaluating.

If there are not too many, all are. Otherwise those that are the worst for one ServicePort: a set of
a given size costs a route most if its nodes carry most of it, so the worst loss of all sets is
among them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from analyzer.failure.incidence import Incidence, rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Up to this many sets, all are evaluated.
_ALL: Final = 20_000
#: Otherwise this many, each the worst for some ServicePort.
_MOST: Final = 1_000


def sets_to_look_at(
    incidence: Incidence, size: int, silencing: tuple[int, ...], costly: Sequence[int]
) -> tuple[Iterator[tuple[int, ...]], bool]:
    """Return sets of `size` groups, and whether these are all.

    `silencing` are groups, perhaps fewer, that put many ServicePorts in total loss; `costly` are
    all groups, the most costly first.
    """
    number = len(incidence.groups)
    if math.comb(number, size) <= _ALL:
        return itertools.combinations(range(number), size), True
    return _worst_of_some(incidence, size, silencing, costly), False


def _worst_of_some(
    incidence: Incidence, size: int, silencing: tuple[int, ...], costly: Sequence[int]
) -> Iterator[tuple[int, ...]]:
    bounds = []
    for at, row in enumerate(row for rows in incidence.services for row in rows):
        lost = row.open + sum(sorted(row.upper.values())[-size:])
        bounds.append((-rank(lost), at, row))
    bounds.sort(key=lambda each: each[:2])
    told: set[tuple[int, ...]] = set()
    found = [silencing]
    for _, _, row in bounds[:_MOST]:
        numbers = row.upper
        found.append(tuple(sorted(numbers, key=lambda each: (-numbers[each], each))[:size]))
    for each in found:
        groups = tuple(sorted(_filled(each, size, costly)))
        if groups not in told:
            told.add(groups)
            yield groups


def _filled(groups: tuple[int, ...], size: int, costly: Sequence[int]) -> tuple[int, ...]:
    """Return `size` groups: these, and the most costly of the others."""
    others = (each for each in costly if each not in groups)
    return (*groups, *itertools.islice(others, size - len(groups)))
