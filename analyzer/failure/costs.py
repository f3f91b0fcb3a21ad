"""What the failure of one or several groups costs: worst loss, mean, and total losses.

The loss of a ServicePort is that of its worst route, as in `loss`; the mean is over all
ServicePorts that have endpoints.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from analyzer.failure.incidence import Incidence, RouteRow
from analyzer.model.value import value


@value(kw_only=True)
class Cost:
    """What one failure costs; losses are in the unit of the incidence.

    Attributes:
        worst: an upper bound of the loss on the worst route of all.
        row: that route's; None if none loses anything.
        upper: the sum of upper bounds over all ServicePorts.
        lower: the sum of what these certainly lose.
        silenced: ServicePorts in total loss.
        degraded: how many others certainly lose some flows.
        unknown: how many may lose some, but not certainly.
    """

    worst: int
    row: RouteRow | None
    upper: int
    lower: int
    silenced: tuple[int, ...]
    degraded: int
    unknown: int


def cost(incidence: Incidence, groups: Collection[int]) -> Cost:
    """Return the cost if these groups fail together, one or more."""
    carried = [row.service for group in groups for row in incidence.of_group[group]]
    worst, worst_row, upper, lower, degraded, unknown = 0, None, 0, 0, 0, 0
    silenced = []
    for service in sorted({*carried, *incidence.open}):
        most, least, row, hits = worst_of(incidence.services[service], groups)
        upper += most
        lower += least
        if most > worst:
            worst, worst_row = most, row
        total = incidence.total[service]
        if total is not None and total.issubset(groups):
            silenced.append(service)
        elif hits:
            degraded += 1
        elif most:
            unknown += 1
    return Cost(
        worst=worst,
        row=worst_row,
        upper=upper,
        lower=lower,
        silenced=tuple(silenced),
        degraded=degraded,
        unknown=unknown,
    )


def losses_with(incidence: Incidence, groups: Collection[int]) -> dict[int, tuple[int, RouteRow]]:
    """Return the upper bound of the loss of each ServicePort that may lose any, and its route."""
    carried = [row.service for group in groups for row in incidence.of_group[group]]
    found = {}
    for service in sorted({*carried, *incidence.open}):
        most, _, row, _ = worst_of(incidence.services[service], groups)
        if most:
            found[service] = most, row
    return found


def worst_of(rows: Sequence[RouteRow], groups: Collection[int]) -> tuple[int, int, RouteRow, bool]:
    """Return the loss on the worst route of a ServicePort, at most and at least, and the route.

    Also return whether some flows are certainly lost on any route.
    """
    if len(rows) == 1:
        (row,) = rows
        most = row.most(groups)
        least = most if row.is_exact else row.least(groups)
        return most, least, row, least > 0
    losses = [(row.most(groups), row.least(groups)) for row in rows]
    best = max(losses)
    return *best, rows[losses.index(best)], any(least for _, least in losses)


@value(kw_only=True)
class Singles:
    """The cost of each group's failure alone, by index; sums are as in `Cost`.

    Attributes:
        odd: by group, the ServicePorts of which it carries some and whose loss is not simply a
            sum over groups, with the upper bound of their loss.
        base: the sum of what ServicePorts may lose with any group.
        excess: by how much at most the sum of two groups' costs, less `base`, is below that of
            both failing together.
    """

    worst: Sequence[int]
    rows: Sequence[RouteRow | None]
    upper: Sequence[int]
    lower: Sequence[int]
    silenced: Sequence[Sequence[int]]
    degraded: Sequence[int]
    unknown: Sequence[int]
    odd: Sequence[dict[int, int]]
    base: int
    excess: int

    def cost(self, group: int) -> Cost:
        """Return the cost of one group's failure."""
        return Cost(
            worst=self.worst[group],
            row=self.rows[group],
            upper=self.upper[group],
            lower=self.lower[group],
            silenced=tuple(self.silenced[group]),
            degraded=self.degraded[group],
            unknown=self.unknown[group],
        )


def singles(incidence: Incidence) -> Singles:
    """Return the cost of each group's failure alone, in one pass over the rows."""
    size = len(incidence.groups)
    sums = _Sums(size)
    open_services = set(incidence.open)
    for service, rows in enumerate(incidence.services):
        if len(rows) == 1 and rows[0].is_exact and rows[0].vantages is None:
            sums.add_plain(rows[0])
        elif rows:
            sums.add_odd(service, rows, is_open=service in open_services)
    for service, total in enumerate(incidence.total):
        if total is not None and len(total) == 1:
            sums.silenced[next(iter(total))].append(service)
    return sums.found()


class _Sums:
    """The sums so far."""

    def __init__(self, size: int) -> None:
        self._worst = [0] * size
        self._rows: list[RouteRow | None] = [None] * size
        self._exact = [0] * size
        self._upper = [0] * size
        self._lower = [0] * size
        self._hit = [0] * size
        self._perhaps = [0] * size
        self._odd: list[dict[int, int]] = [{} for _ in range(size)]
        self._base = 0
        self._excess = 0
        self._always = 0
        self._worst_always: tuple[int, RouteRow | None] = (0, None)
        self.silenced: list[list[int]] = [[] for _ in range(size)]

    def add_plain(self, row: RouteRow) -> None:
        """Add a ServicePort whose loss is a sum over groups."""
        worst, rows, exact, hit = self._worst, self._rows, self._exact, self._hit
        for group, number in row.upper.items():
            exact[group] += number
            hit[group] += 1
            if number > worst[group]:
                worst[group] = number
                rows[group] = row

    def add_odd(self, service: int, rows: Sequence[RouteRow], *, is_open: bool) -> None:
        """Add a ServicePort of several rows, or of one that is not fully known."""
        base = 0
        if is_open:
            base, _, row, _ = worst_of(rows, ())
            self._base += base
            self._excess += base - min(each.most(()) for each in rows)
            self._always += base > 0
            if base > self._worst_always[0] and row.vantages is None:
                self._worst_always = base, row
        looked_at: Iterable[int] = dict.fromkeys(each for row in rows for each in row.upper)
        if is_open and any(row.vantages is not None for row in rows):
            looked_at = range(len(self._worst))  # with some groups not even the base is lost
        for group in looked_at:
            most, least, row, hits = worst_of(rows, (group,))
            self._odd[group][service] = most
            # With a group that carries none of it, the base is lost, which is in every sum.
            self._upper[group] += most - base
            self._lower[group] += least
            self._hit[group] += hits
            self._perhaps[group] += (most > 0 and not hits) - (base > 0)
            if most > self._worst[group]:
                self._worst[group], self._rows[group] = most, row

    def found(self) -> Singles:
        """Return the cost of each group."""
        base, always = self._worst_always
        for group, worst in enumerate(self._worst):
            if base > worst:
                self._worst[group], self._rows[group] = base, always
        return Singles(
            worst=self._worst,
            rows=self._rows,
            upper=[
                self._base + plain + odd
                for plain, odd in zip(self._exact, self._upper, strict=True)
            ],
            lower=[plain + odd for plain, odd in zip(self._exact, self._lower, strict=True)],
            silenced=self.silenced,
            degraded=[hit - len(gone) for hit, gone in zip(self._hit, self.silenced, strict=True)],
            unknown=[self._always + more for more in self._perhaps],
            odd=self._odd,
            base=self._base,
            excess=self._excess,
        )
