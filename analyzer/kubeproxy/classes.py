"""Frontends that are alike have the answer of one of them, which is walked."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

from analyzer.kubeproxy.view import Endpoint, Frontend, Route, Share
from analyzer.model.addresses import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from analyzer.kubeproxy.alike import Closure
    from analyzer.kubeproxy.source_routes import Way

    class Closures(Protocol):
        """Tells which frontends are alike."""

        def of(self, frontend: Frontend, protocol: str) -> Closure | None:
            """Return what flows to a frontend may meet of its own; None: it is in no class."""


class Classes:
    """The answers of frontends that were walked, for those that are alike.

    `closures` tells who is; `is_taken` who has an address, which then stands for no other source.
    """

    def __init__(self, closures: Closures, is_taken: Callable[[Address], bool]) -> None:
        self._closures = closures
        self._is_taken = is_taken
        self._known: dict[Hashable, tuple[Closure, tuple[Way, ...]]] = {}

    def ways(
        self, frontend: Frontend, protocol: str, walked: Callable[[], tuple[Way, ...]]
    ) -> tuple[Way, ...]:
        """Return the routes of a frontend, each with the address that stands for its sources."""
        closure = self._closures.of(frontend, protocol)
        if closure is None:
            return walked()
        known = self._known.get(closure.key)
        if known is None:
            ways = walked()
            if all(self._may_stand(way, closure) for way in ways):
                self._known[closure.key] = closure, ways
            return ways
        first, ways = known
        endpoints = dict(zip(first.endpoints, closure.endpoints, strict=True))
        return tuple([(_carried(route, frontend, endpoints), at) for route, at in ways])

    def _may_stand(self, way: Way, closure: Closure) -> bool:
        route, address = way
        return (
            all(share.endpoint in closure.endpoints for share in route.shares)
            and (route.network is None or str(route.network) in closure.around)
            and (address is None or not self._is_taken(address))
        )


def _carried(route: Route, frontend: Frontend, endpoints: Mapping[Endpoint, Endpoint]) -> Route:
    shares = [Share(endpoints[s.endpoint], s.share, s.masquerade) for s in route.shares]
    return Route(frontend, route.source, tuple(shares), route.unresolved, route.network)
