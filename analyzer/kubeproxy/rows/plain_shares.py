"""A Service's shares from plain rows, computed on first access."""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from analyzer.kubeproxy.rows.shapes import host
from analyzer.kubeproxy.source_part import SourcePart, as_one
from analyzer.kubeproxy.view import (
    Endpoint,
    LazyRoutes,
    LazyShares,
    Route,
    ServicePort,
    Share,
    Source,
)
from analyzer.model.addresses import Address, Network, network_from_text
from analyzer.model.endings import Endings
from analyzer.model.probability import Bounds
from analyzer.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias, overload

    #: Sources that rules do not distinguish, and what happens to their flows after DNAT.
    PartAfterDnat: TypeAlias = tuple[SourcePart, "MasqueradeAndLossOf"]


@enum.unique
class Marked(enum.Enum):
    """Which flows of a frontend its own rule marks for masquerade, from whichever source."""

    NONE = enum.auto()
    ALL = enum.auto()

    # Of an object, in C: caches of what happens to flows have it in their keys.
    __hash__ = object.__hash__


#: ``! -s`` of the rule that marks flows from outside, as written, if it has that.
Unmarked = str | Marked

#: Address, protocol and port of a frontend, as written.
FrontendTexts = tuple[str, str, str]


@value
class PlainService:
    """One ClusterIP frontend, according to its rows.

    Attributes:
        comment: of its row in KUBE-SERVICES.
        unmarked: the network from which flows are not marked for masquerade.
    """

    comment: str
    address: str
    protocol: str
    port: int
    chain: str
    unmarked: Unmarked
    drawn: Drawn

    def is_treated_alike(
        self, one: MasqueradeAndLossOf, other: MasqueradeAndLossOf, address: Address
    ) -> bool:
        """Return whether the same happens to its flows from two parts of a source.

        For those from `address` to itself, masquerade may differ: only losses are compared.
        """
        if not callable(one) and not callable(other):
            return one == other

        def told(after: MasqueradeAndLossOf, end: Endpoint) -> MasqueradeAndLoss | Endings:
            found = _answer(after, self.protocol, end)
            return found.lost if end.address == address else found

        return all(told(one, end) == told(other, end) for end in self.drawn.endpoints)


def network_of(unmarked: Unmarked) -> Network | None:
    """Return the network of sources whose flows are not marked; None: there is none such."""
    return network_from_text(unmarked) if isinstance(unmarked, str) else None


def result_key(after: MasqueradeAndLossOf, service: PlainService) -> Hashable:
    """Return the identities of what happens to flows, to all endpoints or to each.

    Only valid as long as `after` exists, which keeps its results.
    """
    if not callable(after):
        return id(after)
    return tuple([id(after(service.protocol, each)) for each in service.drawn.endpoints])


def differing_parts(
    service: PlainService, parts: Sequence[PartAfterDnat]
) -> Iterator[PartAfterDnat]:
    """Yield the parts of a source whose flows have other results than those around them."""
    if len(parts) == 1:
        yield from parts
        return
    by_part = {part.key: after for part, after in parts}
    kept: list[SourcePart] = []
    for part, after in parts:
        if part.around is not None and part.address is not None:
            around = by_part[part.around]
            if service.is_treated_alike(after, around, part.address):
                continue
        kept.append(part)
    yield from ((part, by_part[part.key]) for part in as_one(kept))


class Drawn:
    """The rows of a Service's chain.

    Attributes:
        marks_for: the frontend whose flows are marked, unless they are from `unmarked`.
        texts: the endpoints as written, in the order in which they are drawn.
        draws: the probability of each.
    """

    __slots__ = ("_endpoints", "draws", "marks_for", "texts", "unmarked")

    def __init__(
        self,
        marks_for: FrontendTexts | None,
        unmarked: Unmarked,
        texts: tuple[str, ...],
        draws: tuple[Bounds, ...],
    ) -> None:
        self.marks_for = marks_for
        self.unmarked = unmarked
        self.texts = texts
        self.draws = draws
        self._endpoints: tuple[Endpoint, ...] | None = None

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The endpoints, made on first access."""
        if self._endpoints is None:
            self._endpoints = tuple(map(endpoint_of, self.texts))
        return self._endpoints

    def printed(self) -> Sequence[str]:
        """Return the endpoints as an `Endpoint` is printed."""
        if self.texts[0].startswith("["):  # IPv6 has more than one spelling
            return [str(endpoint) for endpoint in self.endpoints]
        return self.texts


def endpoint_of(text: str) -> Endpoint:
    """Return an endpoint that is written as ``address:port``."""
    address, _, port = text.rpartition(":")
    return Endpoint(host(address), int(port))


@value
class MasqueradeAndLoss:
    """What happens to flows after DNAT: see `Share`."""

    masquerade: bool | None
    lost: Endings = ()


#: What happens to flows after DNAT: one result for all endpoints of a route, or a function that
#: returns it for a protocol and an endpoint.
MasqueradeAndLossOf = MasqueradeAndLoss | Callable[[str, Endpoint], MasqueradeAndLoss]


#: What happens to flows from each source, by parts; None: it depends on the endpoint.
AfterBySource = tuple[object, ...] | None


def _answer(after: MasqueradeAndLossOf, protocol: str, endpoint: Endpoint) -> MasqueradeAndLoss:
    return after if isinstance(after, MasqueradeAndLoss) else after(protocol, endpoint)


class PlainShares(LazyShares):
    """Shares of one route, each made when it is used.

    `is_quiet` returns, faster than evaluating all of them, whether no flow is lost after its DNAT.
    """

    __slots__ = ("_after", "_drawn", "_is_quiet", "_lost", "_masquerades", "_protocol")

    def __init__(
        self,
        drawn: Drawn,
        protocol: str,
        after: MasqueradeAndLossOf,
        is_quiet: Callable[[], bool] | None = None,
    ) -> None:
        self._drawn = drawn
        self._protocol = protocol
        self._after = after
        self._is_quiet = is_quiet
        # Reports use both, and more than once.
        self._lost: Sequence[Endings] | None = None
        self._masquerades: Sequence[bool | None] = ()

    def _share(self, endpoint: Endpoint, draw: Bounds) -> Share:
        found = _answer(self._after, self._protocol, endpoint)
        return Share(endpoint, draw, found.masquerade, found.lost)

    def __len__(self) -> int:
        return len(self._drawn)

    def __iter__(self) -> Iterator[Share]:
        return map(self._share, self._drawn.endpoints, self._drawn.draws)

    def columns(self) -> tuple[Sequence[str], Sequence[Bounds]]:
        """Return the endpoints as they are printed, and their shares, without making a `Share`."""
        return self._drawn.printed(), self._drawn.draws

    def draws(self) -> tuple[Sequence[Endpoint], Sequence[Bounds]]:
        """Return the endpoints and their shares, without making a `Share`."""
        return self._drawn.endpoints, self._drawn.draws

    def masquerades(self) -> Sequence[bool | None]:
        """Return for each endpoint whether its flows are masqueraded, without making a `Share`."""
        if isinstance(self._after, MasqueradeAndLoss):
            return (self._after.masquerade,) * len(self)
        if self._lost is None:
            self._ask()
        return self._masquerades

    def losses(self) -> Sequence[Endings]:
        """Return for each endpoint how its flows are lost; empty if none of any are."""
        if isinstance(self._after, MasqueradeAndLoss):
            return (self._after.lost,) * len(self) if self._after.lost else ()
        if self._lost is None:
            if self._is_quiet is not None and self._is_quiet():
                return ()
            self._ask()
        return self._lost or ()

    def _ask(self) -> None:
        """Evaluate for each endpoint what happens to its flows."""
        after, protocol = self._after, self._protocol
        every = [_answer(after, protocol, each) for each in self._drawn.endpoints]
        lost = tuple([each.lost for each in every])
        self._lost = lost if any(lost) else ()
        self._masquerades = tuple([each.masquerade for each in every])

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PlainShares) and self._drawn is other._drawn:
            one, two = self._after, other._after
            if one is two or (
                isinstance(one, MasqueradeAndLoss) and isinstance(two, MasqueradeAndLoss)
            ):
                return one == two
        return super().__eq__(other)

    __hash__ = LazyShares.__hash__


class PlainRoutes(LazyRoutes):
    """The routes of one ServicePort, those from each kind of source made when they are used.

    In the order of frontends, and for each of them in that of sources. They are only made if flows
    from all sources traverse the same draws, except for hairpin flows. `is_quiet` returns whether
    none of the flows is certainly or possibly lost after its DNAT.

    Attributes:
        drawn: the draws, if there is one frontend and all endpoints of a route have one result.
        after_by_source: then returns what happens to flows from each source: the same object for
            routes that differ only in frontend and draws.
    """

    __slots__ = (
        "_alike",
        "_class",
        "_found",
        "_from_source",
        "_is_quiet",
        "_made",
        "after_by_source",
        "drawn",
    )

    def __init__(
        self,
        from_source: Callable[[Source], Iterator[Route]],
        is_quiet: Callable[[], bool],
        drawn: Drawn | None = None,
        after_by_source: Callable[[], AfterBySource] = lambda: None,
        found: Callable[[], Hashable] = lambda: None,
    ) -> None:
        self._from_source = from_source
        self.drawn = drawn
        self.after_by_source = after_by_source
        self._found = found
        self._is_quiet = is_quiet
        self._made: tuple[Route, ...] | None = None
        self._alike: tuple[Route, ...] | None = None
        self._class: Hashable = None

    def from_source(self, source: Source) -> Iterator[Route]:
        """Yield the routes from one kind of source, without making the others."""
        return self._from_source(source)

    @property
    def is_quiet(self) -> bool:
        """Whether none of the flows is certainly or possibly lost after its DNAT."""
        return self._is_quiet()

    def settle(self) -> None:
        """Evaluate what happens to the flows after DNAT, so that what is read later is there."""
        if self.is_quiet and self.drawn is not None and self.after_by_source() is not None:
            return  # one result for all endpoints
        for route in self:
            if route.masquerades():
                route.losses()

    def alike(self) -> tuple[Route, ...] | None:
        """Return for each frontend one route of the draws of all; None: there are others too.

        It represents the others in all but source, network and masquerade. Making them all takes
        most of the time of a report that needs no more than this.
        """
        if self._alike is None:
            self._alike = tuple(self.from_source(Source.HAIRPIN))
        plain = all(isinstance(each.shares, PlainShares) for each in self._alike)
        return self._alike if plain else None

    def class_of(self) -> Hashable:
        """Return a key of routes that differ only in frontend and endpoints; or None.

        Compared by identity: only valid as long as the dump's routes exist.
        """
        if self._class is None and self.drawn is not None:
            found = self._found()
            self._class = None if found is None else (id(self.drawn.draws), found)
        return self._class

    def _all(self) -> tuple[Route, ...]:
        if self._made is None:
            by_frontend: dict[int, list[Route]] = {}  # all of one frontend are one object
            for route in (route for source in Source for route in self.from_source(source)):
                by_frontend.setdefault(id(route.frontend), []).append(route)
            self._made = tuple([route for routes in by_frontend.values() for route in routes])
        return self._made

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, index: int) -> Route: ...
        @overload
        def __getitem__(self, index: slice) -> Sequence[Route]: ...

    def __getitem__(self, index: int | slice) -> Route | Sequence[Route]:
        return self._all()[index]

    def __len__(self) -> int:
        return len(self._all())

    def __iter__(self) -> Iterator[Route]:
        return iter(self._all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._all() == tuple(other)

    def __hash__(self) -> int:
        return hash(self._all())


def settle(services: Iterable[ServicePort]) -> None:
    """Evaluate what happens to flows after DNAT, before the routes are read.

    One Service represents all of its class: nothing is looked up for their endpoints one by one.
    """
    settled: set[Hashable] = set()
    for each in services:
        routes = each.routes
        if not isinstance(routes, PlainRoutes):
            continue
        alike = None if routes.is_quiet else routes.class_of()
        if alike is None or alike not in settled:
            settled.add(alike)
            routes.settle()
