"""What has changed about a ServicePort from one dump of a node to the next."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from analyzer.cluster.course import Stood
from analyzer.kubeproxy.diff.changes import RouteIdentity, ServiceChange
from analyzer.kubeproxy.view import Endpoint, ServicePort
from analyzer.reports.cluster_timeline_answer import ChangedService
from analyzer.reports.diff_words import flows
from analyzer.reports.phrases import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

    from analyzer.cluster.reference import ServicePortKey

    #: Some routes of a ServicePort.
    Ways: TypeAlias = tuple[RouteIdentity, ...]


_OPEN: Final = "how flows end, by rules of other programs"


def as_changed(
    node: str,
    key: ServicePortKey,
    change: ServiceChange | None,
    times: tuple[Fraction, Fraction],
    *,
    whole: str,
    before: Stood,
    is_open: bool = False,
) -> ChangedService:
    """Return what has changed.

    `whole`: all of it is gone or added; `is_open`: neither dump decides how its flows end, and
    rules of other programs are not the same.
    """
    gone, added = ({}, {}) if change is None else _by_endpoint(change)
    had, has = (set(), set()) if change is None else (_of(change.a), _of(change.b))
    return ChangedService(
        node=node,
        after=times[0],
        before=times[1],
        service=key[0],
        protocol=key[1],
        version=key[2],
        whole=whole,
        gone=tuple([str(each) for each in gone if each not in has]),
        added=tuple([str(each) for each in added if each not in had]),
        moved=0 if change is None else _moved(change),
        frontends_gone=() if whole or change is None else tuple(map(str, change.gone)),
        frontends_added=() if whole or change is None else tuple(map(str, change.added)),
        other=(_OPEN,) * is_open if change is None else tuple(_other(change, gone, added)),
        is_certain=not is_open if change is None else change.is_certain,
        stood=before,
    )


def _of(service: ServicePort | None) -> set[Endpoint]:
    return set() if service is None else set(service.endpoints)


def _by_endpoint(change: ServiceChange) -> tuple[dict[Endpoint, Ways], dict[Endpoint, Ways]]:
    """Return the routes on which endpoints are gone, and those on which they are added."""
    gone: dict[Endpoint, Ways] = {}
    added: dict[Endpoint, Ways] = {}
    for route in change.routes:
        for each in route.change.endpoints:
            for to, is_one in ((gone, each.b is None), (added, each.a is None)):
                if is_one:
                    to[each.endpoint] = (*to.get(each.endpoint, ()), *route.ways)
    return gone, added


def _moved(change: ServiceChange) -> int:
    """Return how many endpoints have another share, on the route on which most have."""
    moved: set[Endpoint] = set()
    even = 0
    for route in change.routes:
        ends = route.change.endpoints
        moved |= {each.endpoint for each in ends if each.a is not None and each.b is not None}
        if route.change.each is not None:
            even = max(even, route.change.each[0] - sum(each.b is None for each in ends))
    return max(len(moved), even)


def _other(
    change: ServiceChange, gone: dict[Endpoint, Ways], added: dict[Endpoint, Ways]
) -> Iterator[str]:
    """Yield what else differs, and of which flows if not of all."""
    had, has = _of(change.a), _of(change.b)
    for ways_of, still, what in ((gone, has, "gone"), (added, had, "added")):
        by_ways: dict[Ways, list[str]] = {}
        for endpoint, ways in ways_of.items():
            if endpoint in still:
                by_ways.setdefault(ways, []).append(str(endpoint))
        for ways, names in by_ways.items():
            yield _of_flows(f"{listed(names)} {what}", ways, change)
    kinds: dict[str, Ways] = {}
    for route in change.routes:
        told = ["masquerade"] * bool(route.change.masquerade)
        told += ["what reaches no endpoint"] * bool(route.change.otherwise)
        for each in (*told, *(f"perhaps {each}" for each in route.change.unknown)):
            kinds[each] = (*kinds.get(each, ()), *route.ways)
    yield from (_of_flows(what, ways, change) for what, ways in kinds.items())
    if change.affinity is not None:
        yield "session affinity"


def _of_flows(what: str, ways: Ways, change: ServiceChange) -> str:
    which = flows(ways, change)
    return what if which == "all" else f"{what} ({which})"
