"""Which failures exceed a threshold, decided exactly apart from rounded draws.

As with ``loss --max-loss``, flows that reach no endpoint anyway count: what matters is whether new
flows may go to dead endpoints, and which share may reach no living one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from analyzer.errors import UsageError
from analyzer.failure.incidence import ONE, Incidence, RouteRow
from analyzer.failure.limits import allowed
from analyzer.failure.whatif import FailureKind, WhatIf
from analyzer.kubeproxy.view import ServicePort, Source
from analyzer.model.probability import Dyadic
from analyzer.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction
    from typing import Final

#: A sum of rounded numbers is off by less than this.
_ROUNDED: Final = 1 << 32


@value
class Exceeding:
    """Groups, by index, with which a route loses more than is allowed."""

    groups: tuple[int, ...]
    row: RouteRow


@value(kw_only=True)
class Breach:
    """How a threshold is exceeded.

    Attributes:
        kind: of the failure; None if the threshold is for `survives`.
        of_zones: whether that counts zones, not nodes.
        names: of the nodes, or the zone, that fail.
        row: of the route.
        none: the share, at most, that then reaches no living endpoint.
        survives: how many failures the ServicePort certainly survives, which is too few.
    """

    service: ServicePort
    row: RouteRow
    kind: FailureKind | None = None
    names: tuple[str, ...] = ()
    none: Dyadic | None = None
    survives: int | None = None
    of_zones: bool = False


def check_counted(kinds: Collection[str], min_survives: int | None, instead: str = "") -> None:
    """Refuse to count nodes where only other failures are asked about.

    Raises:
        UsageError: that would pass for an answer about these.
    """
    if min_survives is not None and kinds and not {"node", "set"} & set(kinds):
        raise UsageError(
            f"--min-survives counts nodes, which --only {' '.join(sorted(kinds))} leaves out: "
            f"add node to --only{instead}"
        )


def breaches(
    found: WhatIf,
    *,
    max_loss: Fraction | None = None,
    min_survives: int | None = None,
    min_survives_zones: int | None = None,
) -> Iterator[Breach]:
    """Yield one failure of each kind that costs too much, and ServicePorts that survive too few."""
    if max_loss is not None:
        for kind, where, broken in _exceeding(found, max_loss):
            if broken is not None:
                yield Breach(
                    service=found.service(broken.row),
                    row=broken.row,
                    kind=kind,
                    names=tuple(where.groups[each] for each in broken.groups),
                    none=broken.row.reaches_none(broken.groups),
                )
    if min_survives is not None:
        for at, service in enumerate(found.services):
            survives = found.survives(at)
            if survives is not None and survives < min_survives:
                survival = found.survival(at)
                assert survival is not None  # it has endpoints
                yield Breach(service=service, row=survival.row, survives=survives)
    if min_survives_zones is not None:
        for at, service in enumerate(found.services):
            survival = found.survival_of_zones(at)
            if survival is not None and survival.survives < min_survives_zones:
                yield Breach(
                    service=service, row=survival.row, survives=survival.survives, of_zones=True
                )


def _exceeding(
    found: WhatIf, most: Fraction
) -> Iterator[tuple[FailureKind, Incidence, Exceeding | None]]:
    told: set[FailureKind] = set()
    for kind, where, broken in _exceeding_of(found, found.nodes, found.zones, most):
        told |= set() if broken is None else {kind}
        yield kind, where, broken
    if found.from_endpoints is None:
        return
    for kind, where, broken in _exceeding_of(found, *found.from_endpoints, most):
        if broken is not None and kind not in told:
            route = replace(broken.row.route, source=Source.HAIRPIN)
            yield kind, where, replace(broken, row=replace(broken.row, route=route))


def _exceeding_of(
    found: WhatIf, nodes: Incidence, zones: Incidence | None, most: Fraction
) -> Iterator[tuple[FailureKind, Incidence, Exceeding | None]]:
    asked = found.asked
    if found.control_plane is not None:
        groups = found.control_plane.groups
        yield FailureKind.CONTROL_PLANE, nodes, exceeding(nodes, groups, most)
    if FailureKind.ZONE in asked.kinds and zones is not None:
        yield FailureKind.ZONE, zones, exceeding_any(zones, 1, most)
    if FailureKind.NODE in asked.kinds:
        yield FailureKind.NODE, nodes, exceeding_any(nodes, 1, most)
    size = min(asked.depth, len(nodes.groups))
    if FailureKind.SET in asked.kinds and size > 1:
        yield FailureKind.SET, nodes, exceeding_any(nodes, size, most)


def exceeding(incidence: Incidence, groups: Collection[int], most: Fraction) -> Exceeding | None:
    """Return a route that may lose more than `most` when these groups fail together."""
    for row in _touched(incidence, groups):
        if _is_exceeded(row, groups, most):
            return Exceeding(tuple(groups), row)
    return None


def exceeding_any(incidence: Incidence, size: int, most: Fraction) -> Exceeding | None:
    """Return a route that may lose more than `most` when the worst `size` groups for it fail.

    Sets of groups need not be tried: a route loses most with those that carry most of it.
    """
    if size > len(incidence.groups):
        return None
    limits: dict[int, int] = {}  # by the number of endpoints: there may be many rows
    for row in (row for rows in incidence.services for row in rows):
        numbers = row.lower or row.upper
        if not numbers and not row.open:
            continue
        endpoints = len(row.places)
        limit = limits.get(endpoints)
        if limit is None:
            limited = allowed(most, endpoints)
            limit = limits[endpoints] = limited.numerator * ONE // limited.denominator
        lost = _rest(row) + sum(sorted(row.lower.values())[-size:])
        if lost < limit - _ROUNDED:
            continue
        for groups in _worst(row, size, is_close=lost <= limit + _ROUNDED):
            if _is_exceeded(row, groups, most):
                return Exceeding(groups, row)
    return None


def _touched(incidence: Incidence, groups: Iterable[int]) -> Iterator[RouteRow]:
    """Yield the rows that may lose something with these groups, each once."""
    told: set[int] = set()
    for row in (row for group in groups for row in incidence.of_group[group]):
        if id(row) not in told:
            told.add(id(row))
            yield row
    for service in incidence.open:
        for row in incidence.services[service]:
            if row.open and id(row) not in told:
                yield row


def _rest(row: RouteRow) -> int:
    return ONE - sum(row.upper.values()) if row.is_exact else row.rest


def _worst(row: RouteRow, size: int, *, is_close: bool) -> Iterator[tuple[int, ...]]:
    """Yield the groups that carry most of a row, exactly if that is close.

    One of the nodes whose rules have it must be alive: if those would all be gone, the groups that
    carry most without one of them, for each.
    """
    numbers = row.lower or row.upper
    if is_close:
        exact = {group: row.loss((group,)).lower.as_fraction() for group in numbers}
        ordered = sorted(numbers, key=lambda each: (-exact[each], each))
    else:
        ordered = sorted(numbers, key=lambda each: (-numbers[each], each))
    # If everything may be lost with any group, any will do.
    worst = tuple(ordered[:size]) or (0,)
    if not row.is_unasked(worst):
        yield worst
        return
    assert row.vantages is not None  # it is not asked without them
    for alive in sorted(row.vantages):
        yield tuple([each for each in ordered if each != alive][:size])


def _is_exceeded(row: RouteRow, groups: Collection[int], most: Fraction) -> bool:
    if not row.loss(groups).upper:
        return False
    return row.reaches_none(groups).as_fraction() > allowed(most, len(row.places))
