"""The share of each ServicePort's new flows that goes to each node, or each zone.

Theory of operation
===================

A group is a node or a zone. What a route loses when groups fail is a sum over them, so one number
for each group and route answers for every set of groups; sets need not be tried one by one. If a
route is not fully known, there are two such sums. Its loss, when a set F has failed, is from

    lower(F) to min(1, open + upper(F), rest + lower(F))

where `open` is the share that may go to endpoints whose place is not known, or that the dump does
not show, and `rest` the share not known to reach a living endpoint even when nothing has failed. If
everything is known, `open` is 0 and both sums are the same.

To find the worst of many, numbers are whole multiples of 2**-256, rounded down, but never to 0. A
sum of a million of them is off by less than 2**-236, and `rank` rounds to the nearest multiple of
2**-192: two losses rank equal only if they differ by less, which no float could show. Reports have
the exact sum (`RouteRow.loss`), and whether anything is lost at all is never rounded.

If every node is considered, only some may have a route in their rules: its vantages. When all of
them fail, no client uses the route, and nothing is lost on it. So a node's route to its own
endpoints never loses anything: without a row, its groups count for total loss (`Incidence.own`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from analyzer.failure.ways import RouteShares, Ways
from analyzer.kubeproxy.view import Route
from analyzer.model.probability import ALWAYS, NEVER, Bounds, Dyadic, capped_sum
from analyzer.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Bits of the numbers that are compared, and of those, how many may be off.
BITS: Final = 256
ONE: Final = 1 << BITS
_ROUNDED: Final = 64
#: The group of an endpoint whose place is not known.
UNPLACED: Final = -1


def rank(number: int) -> int:
    """Return a number for comparisons, which the rounding of sums does not change."""
    return (number + (1 << _ROUNDED - 1)) >> _ROUNDED


@value(kw_only=True)
class RouteRow:
    """Routes of one ServicePort on which new flows have the same losses, whatever fails.

    Attributes:
        service: its index among the ServicePorts, from 0.
        route: the first of the routes.
        places: the group of each endpoint.
        is_unfilled: it is not known where flows go, as in the middle of a sync.
        lower: what is certainly lost with each group that certainly carries any.
        upper: what is lost at most with each group that may carry any; if everything is known,
            the same mapping.
        open: what may be lost in addition, once anything has failed.
        rest: what is not known to reach a living endpoint when nothing has failed; 0 if everything
            is known.
        total: the groups whose failure together certainly leaves no living endpoint; None if that
            is certain of none.
        vantages: the groups of all nodes whose rules have these routes; None if some living node
            has them, whatever fails.
        at: the names of those nodes; None for all nodes considered.
    """

    service: int
    route: Route
    places: Sequence[int]
    is_unfilled: bool
    lower: Mapping[int, int]
    upper: Mapping[int, int]
    open: int
    rest: int
    total: Collection[int] | None
    vantages: frozenset[int] | None = None
    at: frozenset[str] | None = None

    def is_unasked(self, groups: Collection[int]) -> bool:
        """Return whether all nodes that have these routes are gone when these groups fail."""
        return self.vantages is not None and self.vantages.issubset(groups)

    @property
    def is_exact(self) -> bool:
        """Whether the loss is a single number, whatever fails."""
        return self.lower is self.upper

    def most(self, groups: Collection[int]) -> int:
        """Return what is lost at most with these groups, for comparisons."""
        upper = self.upper
        if self.vantages is not None and self.is_unasked(groups):
            return 0
        lost = self.open + sum([upper[each] for each in groups if each in upper])
        if self.is_exact:
            return lost
        return min(ONE, lost, self.rest + self.least(groups))

    def least(self, groups: Collection[int]) -> int:
        """Return what is certainly lost with these groups, for comparisons."""
        lower = self.lower
        if self.vantages is not None and self.is_unasked(groups):
            return 0
        return sum([lower[each] for each in groups if each in lower])

    def loss(self, groups: Collection[int]) -> Bounds:
        """Return what is lost with these groups, one or more, exactly."""
        if self.is_unasked(groups):
            return Bounds(NEVER, NEVER)
        if self.is_unfilled:
            return Bounds(NEVER, ALWAYS)
        _, shares = self.route.draws()
        drawn = list(zip(self.places, shares, strict=True))
        lost = [share for place, share in drawn if place in groups]
        least = capped_sum(share.lower for share in lost)
        if self.is_exact:
            return Bounds(least, least)
        perhaps = [share.upper for place, share in drawn if place == UNPLACED]
        most = capped_sum([*(s.upper for s in lost), *perhaps, self.route.unresolved])
        return Bounds(least, min(most, ~self._kept(groups)))

    def reaches_none(self, groups: Collection[int]) -> Dyadic:
        """Return the share, at most, that reaches no living endpoint without these groups."""
        if self.is_unasked(groups):
            return NEVER
        return ALWAYS if self.is_unfilled else ~self._kept(groups)

    def _kept(self, groups: Collection[int]) -> Dyadic:
        _, shares = self.route.draws()
        return capped_sum(
            share.lower
            for place, share in zip(self.places, shares, strict=True)
            if place != UNPLACED and place not in groups
        )


@value
class Own:
    """Routes of nodes to endpoints of their own: the row of the first, and the groups of all."""

    row: RouteRow
    groups: frozenset[int]


@value(kw_only=True)
class Incidence:
    """All rows, by ServicePort and by group.

    Attributes:
        groups: names of nodes, or of zones; everywhere else a group is its index here.
        services: rows of each ServicePort, for routes that may lead to an endpoint.
        of_group: the rows that each group may carry some of.
        open: ServicePorts that may lose something with a group that carries none of them.
        total: for each ServicePort, the groups whose failure puts it in total loss; None if
            unknown, or if it has no endpoints.
        own: ServicePorts that nodes send to their own endpoints, with those nodes.
    """

    groups: tuple[str, ...]
    services: tuple[tuple[RouteRow, ...], ...]
    of_group: tuple[tuple[RouteRow, ...], ...]
    open: tuple[int, ...]
    total: tuple[frozenset[int] | None, ...]
    own: Mapping[int, Own] = MappingProxyType({})

    @property
    def counted(self) -> int:
        """The number of ServicePorts that have endpoints, or may have."""
        return sum(bool(rows) or at in self.own for at, rows in enumerate(self.services))

    @property
    def fewest_vantages(self) -> int | None:
        """The least number of groups that contain all nodes that have some route."""
        counted = (row.vantages for rows in self.services for row in rows)
        return min((len(each) for each in counted if each is not None), default=None)


def incidence(
    services: Sequence[Ways],
    groups: Iterable[str],
    groups_of: Callable[[Sequence[str]], Sequence[str | None]],
    group_of_node: Callable[[str], str | None] = str,
) -> Incidence:
    """Return how much of each ServicePort each group carries.

    `groups_of` returns the group of each endpoint, given as printed; `group_of_node` that of a
    node.
    """
    maker = _Maker(groups, groups_of, group_of_node)
    made = [[*maker.rows(at, service)] for at, service in enumerate(services)]
    rows = tuple(tuple(row for row in own if not _is_own(row)) for own in made)
    owned = {at: [row for row in own if _is_own(row)] for at, own in enumerate(made)}
    own_groups = {
        at: Own(own[0], frozenset(group for row in own for group in row.upper))
        for at, own in owned.items()
        if own
    }
    of_group: list[list[RouteRow]] = [[] for _ in maker.numbers]
    for row in (row for own in rows for row in own):
        for group in row.upper:
            of_group[group].append(row)
    return Incidence(
        groups=tuple(maker.numbers),
        services=rows,
        of_group=tuple(map(tuple, of_group)),
        open=tuple(at for at, own in enumerate(rows) if any(row.open for row in own)),
        total=tuple(
            _total(own, own_groups[at].groups if at in own_groups else frozenset())
            for at, own in enumerate(rows)
        ),
        own=own_groups,
    )


def _is_own(row: RouteRow) -> bool:
    """Return whether it loses nothing unless all nodes whose rules have it are gone too."""
    if row.vantages is None or len(row.vantages) != 1 or row.open:
        return False
    return row.upper.keys() <= row.vantages


def _total(rows: Sequence[RouteRow], own: frozenset[int]) -> frozenset[int] | None:
    """Return the groups that put a ServicePort with these rows in total loss, if certain.

    `own` are the groups of nodes that have endpoints for themselves.
    """
    if len(rows) == 1 and rows[0].is_exact and not own:
        return frozenset(rows[0].upper)  # as nearly all are
    found = set(own)
    for row in rows:
        if row.total is None:
            return None
        found.update(row.total)
    # If nothing is certainly lost, it is unknown, whether every living endpoint is gone or not.
    return frozenset(found) if any(row.lower for row in rows) else None


@value
class _Numbers:
    """The shares of a list, for comparisons; the same list twice if lower and upper are equal.

    `some`: every share may be drawn.
    """

    lower: Sequence[int]
    upper: Sequence[int]
    some: bool


class _Maker:
    """Makes rows: most Services have one of the same few lists of shares."""

    def __init__(
        self,
        groups: Iterable[str],
        groups_of: Callable[[Sequence[str]], Sequence[str | None]],
        group_of_node: Callable[[str], str | None],
    ) -> None:
        self.numbers = {name: at for at, name in enumerate(groups)}
        self._groups_of = groups_of
        self._group_of_node = group_of_node
        # By identity; the lists are kept, so that no other list gets their identity.
        self._shares: dict[int, tuple[object, _Numbers]] = {}

    def rows(self, at: int, ways: Ways) -> Iterator[RouteRow]:
        """Yield the rows of a ServicePort."""
        if ways.unfilled is not None:
            yield _unfilled(at, ways.unfilled)
        for way in ways.known:
            row = self._row(at, way)
            if row is not None:
                if way.vantages is not None:
                    row = replace(row, vantages=self._vantages(way.vantages), at=way.vantages)
                yield row

    def _vantages(self, nodes: Iterable[str]) -> frozenset[int] | None:
        """Return the groups of nodes; None if one is in no group, so that it cannot fail."""
        found = {self._group_of_node(node) for node in nodes}
        numbers = frozenset(self.numbers[name] for name in found if name in self.numbers)
        return numbers if len(numbers) == len(found) else None

    def _row(self, at: int, way: RouteShares) -> RouteRow | None:
        """Return the row of a route; None if it leads to no endpoint, dead or alive."""
        route, shares = way.route, way.shares
        numbers = self._numbers(shares)
        places = self._places(way.printed)
        upper = _sums(places, numbers.upper, some=numbers.some)
        if not upper and not route.unresolved:
            return None
        lower = upper
        if numbers.lower is not numbers.upper:
            lower = _sums(places, numbers.lower, some=False)
        if lower is upper and UNPLACED not in upper and not route.unresolved:
            return RouteRow(
                service=at,
                route=route,
                places=places,
                is_unfilled=False,
                lower=upper,
                upper=upper,
                open=0,
                rest=0,
                total=upper.keys(),
            )
        return _open_row(at, route, places, shares, dict(lower), upper)

    def _places(self, printed: Sequence[str]) -> list[int]:
        names = self._groups_of(printed)
        numbers = self.numbers
        try:
            return [numbers[name] for name in names]  # type: ignore[index]  # None is a KeyError
        except KeyError:
            return [
                UNPLACED if name is None else numbers.setdefault(name, len(numbers))
                for name in names
            ]

    def _numbers(self, shares: Sequence[Bounds]) -> _Numbers:
        key = id(shares)
        if key not in self._shares:
            upper = [_number(share.upper) for share in shares]
            exact = all(share.is_exact for share in shares)
            lower = upper if exact else [_number(share.lower) for share in shares]
            self._shares[key] = shares, _Numbers(lower, upper, all(upper))
        return self._shares[key][1]


def _number(share: Dyadic) -> int:
    """Return a share for comparisons: rounded down, but to 0 only if it is 0."""
    if not share:
        return 0
    shift = BITS - share.exponent
    return share.numerator << shift if shift >= 0 else max(1, share.numerator >> -shift)


def _sums(places: Sequence[int], numbers: Sequence[int], *, some: bool) -> dict[int, int]:
    """Return the sum of each group; `some`: none of the numbers is 0."""
    if some:
        found = dict(zip(places, numbers, strict=True))
        if len(found) == len(places):
            return found
    found = {}
    for place, number in zip(places, numbers, strict=True):
        if number:
            found[place] = found.get(place, 0) + number
    return found


def _unfilled(at: int, route: Route) -> RouteRow:
    """Return the row of frontends without known routes."""
    return RouteRow(
        service=at,
        route=route,
        places=(),
        is_unfilled=True,
        lower={},
        upper={},
        open=ONE,
        rest=ONE,
        total=None,
    )


def _open_row(
    at: int,
    route: Route,
    places: Sequence[int],
    shares: Sequence[Bounds],
    lower: dict[int, int],
    upper: dict[int, int],
) -> RouteRow:
    """Return the row of a route that is not fully known."""
    unplaced = upper.pop(UNPLACED, 0)
    lower.pop(UNPLACED, None)
    kept = capped_sum(
        share.lower for place, share in zip(places, shares, strict=True) if place != UNPLACED
    )
    total: Collection[int] | None = None
    if kept == ALWAYS:
        total = lower.keys()
    elif not unplaced and not route.unresolved:
        total = upper.keys()
    return RouteRow(
        service=at,
        route=route,
        places=places,
        is_unfilled=False,
        lower=lower,
        upper=upper,
        open=unplaced + _number(route.unresolved),
        rest=_number(~kept),
        total=total,
    )
