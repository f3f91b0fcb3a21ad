"""The routes of one frontend, applied to the other frontends of its class.

Only frontend and endpoints differ. What is the same for the whole class (draws, masquerade, losses)
is one list, by whose identity reports notice that they have seen it before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from analyzer.kubeproxy.view import Endpoint, Frontend, LazyShares, Route, Share
from analyzer.model.endings import Endings
from analyzer.model.probability import Bounds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from analyzer.kubeproxy.routes.source_routes import Way

    T = TypeVar("T")


class RouteEndpoints:
    """The endpoints of a route, and how they are printed."""

    __slots__ = ("_printed", "endpoints")

    def __init__(self, endpoints: tuple[Endpoint, ...]) -> None:
        self.endpoints = endpoints
        self._printed: tuple[str, ...] | None = None

    @property
    def printed(self) -> tuple[str, ...]:
        """The endpoints as text, made when it is first asked for."""
        if self._printed is None:
            self._printed = tuple(map(str, self.endpoints))
        return self._printed


class Pattern:
    """The shares of a route without their endpoints.

    Attributes:
        places: of the endpoint of each share among those of the frontend.
        losses: as those of a `Route`.
    """

    __slots__ = ("draws", "losses", "masquerades", "places")

    def __init__(
        self,
        places: tuple[int, ...],
        draws: tuple[Bounds, ...],
        masquerades: tuple[bool | None, ...],
        losses: tuple[Endings, ...],
    ) -> None:
        self.places = places
        self.draws = draws
        self.masquerades = masquerades
        self.losses = losses


class CarriedShares(LazyShares):
    """The shares of a pattern with the endpoints of one frontend, made when they are looked at."""

    __slots__ = ("_ends", "_pattern")

    def __init__(self, ends: RouteEndpoints, pattern: Pattern) -> None:
        self._ends = ends
        self._pattern = pattern

    def __len__(self) -> int:
        return len(self._pattern.draws)

    def __iter__(self) -> Iterator[Share]:
        pattern = self._pattern
        losses = pattern.losses or ((),) * len(self)
        return map(Share, self._ends.endpoints, pattern.draws, pattern.masquerades, losses)

    def columns(self) -> tuple[Sequence[str], Sequence[Bounds]]:
        """Return the endpoints as they are printed, and their shares."""
        return self._ends.printed, self._pattern.draws

    def draws(self) -> tuple[Sequence[Endpoint], Sequence[Bounds]]:
        """Return the endpoints and their shares."""
        return self._ends.endpoints, self._pattern.draws

    def masquerades(self) -> Sequence[bool | None]:
        """Return of each endpoint whether its flows are masqueraded."""
        return self._pattern.masquerades

    def losses(self) -> Sequence[Endings]:
        """Return of each endpoint how its flows are lost; empty where none of any is."""
        return self._pattern.losses


class Carried:
    """The routes of a frontend, which has `endpoints`, for all that are alike."""

    def __init__(self, ways: Sequence[Way], endpoints: Sequence[Endpoint]) -> None:
        numbers = {endpoint: at for at, endpoint in enumerate(endpoints)}
        equal: dict[object, tuple[object, ...]] = {}
        self._ways = [(*way, _pattern(way[0], numbers, equal)) for way in ways]

    def to(self, frontend: Frontend, ends: EndsOf) -> tuple[Way, ...]:
        """Return the routes of another frontend, whose endpoints are `ends`."""
        found: list[Way] = []
        for route, address, pattern in self._ways:
            shares = CarriedShares(ends.at(pattern.places), pattern)
            told = route.unresolved, route.network, route.astray, route.also
            found.append((Route(frontend, route.source, shares, *told), address))
        return tuple(found)


class EndsOf:
    """The endpoints of a frontend in the orders in which its routes have them."""

    def __init__(self, endpoints: tuple[Endpoint, ...]) -> None:
        self.endpoints = endpoints
        self._all = tuple(range(len(endpoints)))
        self._known: dict[tuple[int, ...], RouteEndpoints] = {}

    def at(self, places: tuple[int, ...]) -> RouteEndpoints:
        """Return those of some places."""
        found = self._known.get(places)
        if found is None:
            endpoints = self.endpoints
            if places != self._all:
                endpoints = tuple([endpoints[at] for at in places])
            found = self._known[places] = RouteEndpoints(endpoints)
        return found


def _pattern(
    route: Route, numbers: Mapping[Endpoint, int], equal: dict[object, tuple[object, ...]]
) -> Pattern:
    """Return the shares of a route; lists are the same object as those in `equal` like them."""

    def one(held: tuple[T, ...]) -> tuple[T, ...]:
        first: tuple[T, ...] = equal.setdefault(held, held)  # type: ignore[assignment]  # equal
        return first

    return Pattern(
        one(tuple([numbers[share.endpoint] for share in route.shares])),
        one(tuple([share.share for share in route.shares])),
        tuple(route.masquerades()),
        one(tuple(route.losses())),
    )
