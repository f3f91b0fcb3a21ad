"""Compares the Services of two dumps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, TypeAlias

from analyzer.kubeproxy.diff.beside import NonServiceFlows
from analyzer.kubeproxy.diff.changes import (
    SHARES,
    Change,
    RouteChange,
    RouteIdentity,
    ServiceChange,
)
from analyzer.kubeproxy.diff.expected import Expected
from analyzer.kubeproxy.diff.networks import by_network
from analyzer.kubeproxy.diff.pairs import common_frontends, pairs, place, version_of
from analyzer.kubeproxy.diff.routes import ComparedRoute, RouteComparer
from analyzer.kubeproxy.diff.side import DumpSide
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.rows.plain_shares import AfterBySource, PlainRoutes
from analyzer.kubeproxy.untold import Untold
from analyzer.kubeproxy.view import Frontend, Route, ServicePort, Source
from analyzer.model.probability import NEVER
from analyzer.model.value import replace, value

_Routes: TypeAlias = Callable[[Frontend, Source], Sequence[Route]]

#: Iterating over the enumeration itself takes longer.
_SOURCES: Final = tuple(Source)


@value(kw_only=True)
class Compared:
    """What a comparison found.

    Attributes:
        changes: the ServicePorts that are not the same, in the order of their names.
        cut: whether one of the dumps may have had more ServicePorts.
        both: how many ServicePorts both dumps have.
        alike: of these, how many are the same as far as known but not fully known: what is not
            known in one dump is not known in the other either.
        is_open: whether these may differ, since rules of other programs do.
        expected: differences of nftables mode by design.
    """

    changes: tuple[ServiceChange, ...]
    both: int
    alike: int
    is_open: bool = False
    cut: bool = False
    expected: tuple[NonServiceFlows, ...] = ()


def compare(
    a: DumpSide, b: DumpSide, version: int, named: Collection[str] | None = None
) -> Compared:
    """Return what differs for the ServicePorts of an IP version, all or those `named`."""
    wanted = {None, version}
    comparer = _Comparer(a, b)
    changes: list[ServiceChange] = []
    both = alike = 0
    here = [s for s in a.view.services if version_of(s) in wanted]
    there = [s for s in b.view.services if version_of(s) in wanted]
    for one, other in pairs(here, there):
        names = {each.name.text for each in (one, other) if each is not None}
        if named is not None and names.isdisjoint(named):
            continue
        if one is None or other is None:
            lacking = b if other is None else a
            changes.append(_only(one, other, cut=version in lacking.view.cut))
            continue
        both += 1
        change, is_alike = comparer.service(one, other)
        alike += is_alike
        if change is not None:
            changes.append(change)
    changes.sort(key=lambda each: (each.name.text, each.protocol, each.version or 0))
    expected = tuple(comparer.expected.told(version))
    return Compared(
        changes=tuple(changes),
        both=both,
        alike=alike,
        is_open=bool(alike) and a.rules_of_others() != b.rules_of_others(),
        cut=version in {*a.view.cut, *b.view.cut} or _may_differ(a.view.untold, b.view.untold),
        expected=expected,
    )


def _may_differ(a: Sequence[Untold], b: Sequence[Untold]) -> bool:
    """Return whether rules that were not evaluated may differ: unless they are there and equal."""
    return set(a) != set(b) or not all(each.rules for each in a)


def _only(a: ServicePort | None, b: ServicePort | None, *, cut: bool) -> ServiceChange:
    """Return the change of a ServicePort that only one dump has."""
    there = a or b
    assert there is not None
    return ServiceChange(
        name=there.name,
        protocol=there.protocol,
        version=version_of(there),
        a=a,
        b=b,
        gone=() if a is None else a.frontends,
        added=() if b is None else b.frontends,
        cut=cut,
    )


class _Comparer:
    """Compares ServicePorts that both dumps have."""

    def __init__(self, a: DumpSide, b: DumpSide) -> None:
        a.at_the_same_node(b)
        b.at_the_same_node(a)
        self._a, self._b = a, b
        self._routes = RouteComparer()
        self.expected = Expected(a, b)
        #: For plain routes with the same draws in both, by identity of their results, which are
        #: kept: whether all is known; such ServicePorts do not differ.
        self._same: dict[tuple[int, int], tuple[AfterBySource, AfterBySource, bool]] = {}
        #: Kinds of frontends from comments take precedence over guessed ones.
        self._kinds_of_b = a.view.mode is ProxyMode.NFTABLES

    def service(self, a: ServicePort, b: ServicePort) -> tuple[ServiceChange | None, bool]:
        """Return what differs, if anything, and whether the rest is alike but not fully known."""
        after_by_source = self._after_by_source(a, b)
        key = id(after_by_source[0]), id(after_by_source[1])
        if key in self._same:
            return None, self._same[key][2]
        change, alike = self._compared(a, b)
        if after_by_source != (None, None) and change is None:
            self._same[key] = *after_by_source, alike
        return change, alike

    def _after_by_source(
        self, a: ServicePort, b: ServicePort
    ) -> tuple[AfterBySource, AfterBySource]:
        """Return what happens to flows to the same endpoints in both; None: compare every route."""
        one, other = a.routes, b.routes
        if (
            isinstance(one, PlainRoutes)
            and isinstance(other, PlainRoutes)
            and one.drawn is not None
            and other.drawn is not None
            and self._routes.draws_alike(one.drawn, other.drawn)
            and [*map(place, a.frontends)] == [*map(place, b.frontends)]
            and not (a.affinity or b.affinity or a.unfilled or b.unfilled)
        ):
            after_by_source = one.after_by_source(), other.after_by_source()
            if None not in after_by_source:
                return after_by_source
        return None, None

    def _compared(self, a: ServicePort, b: ServicePort) -> tuple[ServiceChange | None, bool]:
        common = common_frontends(a, b)
        found: dict[Change, list[RouteIdentity]] = {}
        ways = 0
        alike = False
        for way, change in self._changes(a, b, common):
            ways += 1
            alike |= bool(change.alike)
            if change.is_certain or change.unknown:
                found.setdefault(replace(change, alike=()), []).append(way)
        gone = _without(a.frontends, [frontend for frontend, _ in common])
        added = _without(b.frontends, [frontend for _, frontend in common])
        affinity = _affinity(a, b)
        if not (found or gone or added or affinity):
            return None, alike
        named = a if a.name.service is not None else b
        told = ServiceChange(
            name=named.name,
            protocol=a.protocol,
            version=version_of(a) or version_of(b),
            a=a,
            b=b,
            gone=gone,
            added=added,
            affinity=affinity,
            routes=tuple([RouteChange(tuple(each), change) for change, each in found.items()]),
            ways=ways,
            cut=bool(
                (gone and version_of(a) in self._b.view.cut)
                or (added and version_of(b) in self._a.view.cut)
            ),
        )
        return told, False

    def _changes(
        self, a: ServicePort, b: ServicePort, common: Sequence[tuple[Frontend, Frontend]]
    ) -> Iterator[tuple[RouteIdentity, Change]]:
        of_a, of_b = _by_source(a), _by_source(b)
        for here, there in common:
            in_a = _filled([of_a(here, source) for source in _SOURCES], here)
            in_b = _filled([of_b(there, source) for source in _SOURCES], there)
            filled = here not in a.unfilled and there not in b.unfilled
            shown = there if self._kinds_of_b else here
            for source, one, other in zip(_SOURCES, in_a, in_b, strict=True):
                if bool(one) is not bool(other) and source is not Source.HAIRPIN:
                    # Only one of the dumps has any such source.
                    yield RouteIdentity(shown, source, None), Change(unknown=(SHARES,))
                for network, but, mine, theirs in by_network(one, other):
                    way = RouteIdentity(shown, source, network, but)
                    # In nearly all Services nothing differs, which takes less than a full
                    # comparison to see.
                    change = self._routes.same(mine, theirs) if filled else None
                    if change is None:
                        change = self._routes.change(
                            _asked(self._a, a, mine), _asked(self._b, b, theirs)
                        )
                    yield way, self.expected.without(way, a.protocol, change)


def _without(frontends: Sequence[Frontend], common: Sequence[Frontend]) -> tuple[Frontend, ...]:
    """Return the frontends that are not in `common`, which has no others."""
    if len(frontends) == len(common):
        return ()
    known = set(common)
    return tuple([each for each in frontends if each not in known])


def _filled(routes: list[Sequence[Route]], frontend: Frontend) -> list[Sequence[Route]]:
    """Return the routes from each source; for a frontend that is refused, routes without shares."""
    if any(routes):
        return routes
    return [
        # Without endpoints no flow comes from one.
        () if source is Source.HAIRPIN else (Route(frontend, source, (), NEVER),)
        for source in _SOURCES
    ]


def _asked(side: DumpSide, service: ServicePort, route: Route) -> ComparedRoute:
    return ComparedRoute(
        route=route,
        otherwise=lambda: side.otherwise(service.protocol, route),
        filled=route.frontend not in service.unfilled,
    )


def _by_source(service: ServicePort) -> _Routes:
    """Return a function that returns the routes of a frontend and a kind of source."""
    routes = service.routes
    if not isinstance(routes, tuple) and len(service.frontends) == 1:
        return lambda _, source: tuple(routes.from_source(source))
    found: dict[Frontend, dict[Source, list[Route]]] = {}
    for route in service.routes:
        found.setdefault(route.frontend, {}).setdefault(route.source, []).append(route)
    return lambda frontend, source: found.get(frontend, {}).get(source, ())


def _affinity(a: ServicePort, b: ServicePort) -> tuple[int | None, int | None] | None:
    """Return the session affinity of both if it differs; ignored if one has no endpoints."""
    if a.affinity == b.affinity or not _leads_somewhere(a) or not _leads_somewhere(b):
        return None
    return a.affinity, b.affinity


def _leads_somewhere(service: ServicePort) -> bool:
    return any(len(route.shares) for route in service.routes)
