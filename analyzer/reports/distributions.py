"""The distributions of a ServicePort: one if all frontends and sources agree, else several."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.kubeproxy.view import Frontend, Route, ServicePort, Source
from analyzer.model.value import value
from analyzer.reports.route_networks import networks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_PODS: Final = (Source.POD, Source.POD_ELSEWHERE)


@value
class Distribution:
    """The common distribution of flows from some kinds of source.

    Attributes:
        route: one of the routes that have it.
        sources: each kind of source, with its network where rules distinguish networks.
    """

    route: Route
    sources: tuple[str, ...]


@value
class FrontendGroup:
    """Frontends with the same distributions."""

    frontends: tuple[Frontend, ...]
    distributions: tuple[Distribution, ...]


def groups(service: ServicePort) -> list[FrontendGroup]:
    """Return the frontends of a ServicePort, grouped by their distributions."""
    by_frontend: dict[Frontend, list[Route]] = {f: [] for f in service.frontends}
    for route in service.differing_routes():
        by_frontend[route.frontend].append(route)
    keys = _Keys()
    found: dict[object, list[Frontend]] = {}
    kept: dict[object, tuple[Distribution, ...]] = {}
    for frontend, routes in by_frontend.items():
        same: dict[object, list[Route]] = {}
        for route in routes:
            same.setdefault(keys.of(route), []).append(route)
        told = {key: _sources(alike, routes) for key, alike in same.items()}
        every = tuple(told.items())
        found.setdefault(every, []).append(frontend)
        kept[every] = tuple(Distribution(same[key][0], told[key]) for key in same if told[key])
    return [FrontendGroup(tuple(frontends), kept[key]) for key, frontends in found.items()]


def _sources(alike: Sequence[Route], every: Sequence[Route]) -> tuple[str, ...]:
    """Return whose flows have `alike`, in words; a hairpin only where it is not as from a pod."""
    if len(alike) == len(every):
        return ("anywhere",)
    plain = {route.source for route in alike if route.network is None}
    found = ["pods"] if plain.issuperset(_PODS) else [s.value for s in _PODS if s in plain]
    found += [
        f"{r.source.value} in {networks(r)}" for r in alike if r.source in _PODS and r.network
    ]
    if Source.NODE in plain:
        found.append(Source.NODE.value)
    outside = [networks(r) for r in alike if r.source is Source.EXTERNAL]
    found += [named or Source.EXTERNAL.value for named in outside]
    if Source.HAIRPIN in plain and Source.POD not in plain:
        found.append(Source.HAIRPIN.value)
    return tuple(found)


class _Keys:
    """Gives routes of the same shares the same key, without looking at equal lists twice."""

    def __init__(self) -> None:
        #: By identity; the lists are kept, so that no others get theirs.
        self._known: dict[tuple[int, int], tuple[object, object, object]] = {}

    def of(self, route: Route) -> object:
        endpoints, shares = route.columns()
        pair = id(endpoints), id(shares)
        if pair not in self._known:
            self._known[pair] = (tuple(endpoints), tuple(shares)), endpoints, shares
            for key, _, _ in self._known.values():
                if key == self._known[pair][0]:  # the first of equal ones represents all
                    self._known[pair] = key, endpoints, shares
                    break
        return id(self._known[pair][0]), route.unresolved
