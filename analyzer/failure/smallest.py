"""How many nodes, or zones, a ServicePort can lose, and the smallest sets for a total loss.

A route is in total loss if no endpoint of it is alive: the smallest set that causes it consists of
the groups of its endpoints, and there is no other. A ServicePort survives as many failures as its
weakest route does. A route whose endpoints are all on the node of the dump, as under a Local
policy, fails with that node only, and then no client uses its rules: it does not count if the
ServicePort has other routes. If every node is considered, neither does a route that fails only with
all nodes whose rules have it; if no route counts, the ServicePort is in total loss when all of its
endpoints are gone.
"""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.failure.costs import worst_of
from analyzer.failure.incidence import Incidence, RouteRow
from analyzer.model.value import value


@value(kw_only=True)
class Survival:
    """What a ServicePort survives.

    Attributes:
        survives: this many groups, whichever they are, can fail, and every route that counts
            certainly leads to a living endpoint.
        at_most: one more than this many groups certainly put a route in total loss, if they are
            the right ones; None if no such number is known.
        sets: the smallest sets of groups that certainly put a route in total loss, by index.
        set_row: of a route that the first of them puts in total loss.
        row: of a route that may survive no more; if that is certain, the same.
        is_total: whether each of the sets puts the ServicePort in total loss, on every route.
        worst: the single group that costs a route most; None if none is known to carry any of it.
        worst_row: of that route.
    """

    survives: int
    at_most: int | None
    sets: tuple[tuple[int, ...], ...]
    set_row: RouteRow | None
    row: RouteRow
    is_total: bool
    worst: int | None
    worst_row: RouteRow | None


def survival(
    incidence: Incidence, service: int, counted_rows: Sequence[int] | None = None
) -> Survival | None:
    """Return what a ServicePort survives; None without endpoints.

    `counted_rows` are the indexes of those of its rows that count; None for all.
    """
    rows = incidence.services[service]
    counted = [rows[at] for at in (range(len(rows)) if counted_rows is None else counted_rows)]
    counted = [row for row in counted if not _dies_with_vantages(row)]
    if not counted:
        return _of_all_endpoints(incidence, service)
    weakest = min(counted, key=_survives)
    certain = [(row.total, row) for row in counted if row.total is not None and row.lower]
    least = min((len(groups) for groups, _ in certain), default=0)
    sets: dict[tuple[int, ...], RouteRow] = {}
    for groups, row in certain:
        if len(groups) == least:
            sets.setdefault(tuple(sorted(groups)), row)
    set_row = next(iter(sets.values()), None)
    if set_row is not None and least - 1 == _survives(weakest):
        weakest = set_row
    total = incidence.total[service]
    worst, worst_row = _worst(rows)
    return Survival(
        survives=_survives(weakest),
        at_most=least - 1 if certain else None,
        sets=tuple(sets),
        set_row=set_row,
        row=weakest,
        is_total=total is not None and all(total.issubset(each) for each in sets),
        worst=worst,
        worst_row=worst_row,
    )


def _of_all_endpoints(incidence: Incidence, service: int) -> Survival | None:
    """Return what a ServicePort survives if no route counts."""
    rows, own = incidence.services[service], incidence.own.get(service)
    if not rows and own is None:
        return None
    groups = _all_groups(incidence, service)
    row = rows[0] if own is None else own.row
    worst, worst_row = _worst(rows)
    return Survival(
        survives=len(groups) - 1,
        at_most=len(groups) - 1,
        sets=(tuple(sorted(groups)),),
        set_row=row,
        row=row,
        is_total=True,
        worst=worst,
        worst_row=worst_row,
    )


def _all_groups(incidence: Incidence, service: int) -> frozenset[int]:
    own = incidence.own.get(service)
    groups = frozenset(group for row in incidence.services[service] for group in row.upper)
    return groups if own is None else groups | own.groups


def _dies_with_vantages(row: RouteRow) -> bool:
    """Return whether all nodes that have a route are gone when its endpoints are."""
    return row.vantages is not None and not row.open and row.vantages <= row.upper.keys()


def survives(incidence: Incidence, service: int, own: int | None) -> int | None:
    """Return how many groups a ServicePort certainly survives; None without endpoints."""
    rows = incidence.services[service]
    if len(rows) > 1:
        rows = tuple(rows[at] for at in rows_that_count(rows, own))
    counted = [row for row in rows if not _dies_with_vantages(row)]
    if not counted and (rows or service in incidence.own):
        return len(_all_groups(incidence, service)) - 1
    return min(map(_survives, counted)) if counted else None


def rows_that_count(rows: Sequence[RouteRow], own: int | None) -> Sequence[int]:
    """Return the indexes of the rows that are not all on the node of the dump.

    All of them if there is no other; `own` is that node's group, if it is known. The rows of zones
    have the same indexes.
    """
    elsewhere = [at for at, row in enumerate(rows) if not _is_own(row, own)]
    return elsewhere or range(len(rows))


def _is_own(row: RouteRow, own: int | None) -> bool:
    return own is not None and not row.open and row.upper.keys() == {own}


def _survives(row: RouteRow) -> int:
    """Return how many groups can fail and certainly leave it a living endpoint."""
    # Endpoints whose place is not known may all be on the first group that fails.
    return max(0, len(row.lower) - 1)


def _worst(rows: Sequence[RouteRow]) -> tuple[int | None, RouteRow | None]:
    """Return the first group that costs a route of these most, and the route."""
    if len(rows) == 1 and rows[0].is_exact and rows[0].vantages is None:
        numbers = rows[0].upper
        return max(numbers, key=numbers.__getitem__), rows[0]
    most, found, of = 0, None, None
    for group in dict.fromkeys(each for row in rows for each in row.upper):
        number, _, row, _ = worst_of(rows, (group,))
        if number > most:
            most, found, of = number, group, row
    return found, of
