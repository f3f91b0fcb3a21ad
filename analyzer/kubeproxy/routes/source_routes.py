"""The routes of a frontend from every kind of source, and hairpin routes.

The rules are traversed once for each kind of source, whatever they distinguish of it (`explored`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from analyzer.kubeproxy.routes.explored import Explored
from analyzer.kubeproxy.routes.flows import FlowWalks
from analyzer.kubeproxy.routes.packets import SIDES
from analyzer.kubeproxy.routes.source_parts import SourceParts
from analyzer.kubeproxy.source_part import SourcePart, as_one
from analyzer.kubeproxy.view import Frontend, Route, Share, Source
from analyzer.model.addresses import Address
from analyzer.model.devices import Side
from analyzer.model.intervals import everything, joined
from analyzer.model.probability import NEVER
from analyzer.model.region import Region
from analyzer.model.value import replace

#: A route, and the address that represents its sources; None: not known.
Way: TypeAlias = "tuple[Route, Address | None]"
#: Returns the ways of flows from some sources of one kind; these may be evaluated among others.
Explore: TypeAlias = "Callable[[Source, Region, Side | None, Region | None], Explored]"

#: The kinds of sources besides the endpoints themselves.
_KINDS: Final = tuple([source for source in Source if source is not Source.HAIRPIN])
#: Those whose flows differ only in their source address.
_LIKE_PODS: Final = (Source.POD, Source.POD_ELSEWHERE)
#: Most shares, over the parts of one kind of source, for which masquerade is reported.
_MOST_TOLD: Final = 10_000
_TOO_MANY: Final = (
    "rules distinguish many sources that differ only in masquerade: whether such flows are "
    "masqueraded is not reported"
)


class SourceRoutes:
    """The routes of frontends; `own` are the node's addresses, if known."""

    def __init__(self, walks: FlowWalks, parts: SourceParts, own: Sequence[Address]) -> None:
        self._walks = walks
        self._parts = parts
        self._own = frozenset(own)
        self._version = parts.version

    def ways(self, frontend: Frontend, protocol: str) -> Iterator[Way]:
        """Return the routes of flows to a frontend."""

        def explore(
            source: Source, of: Region, side: Side | None, among: Region | None = None
        ) -> Explored:
            return self._walks.explored(frontend, protocol, source, of, side, among)

        return self.explored(frontend, explore)

    def explored(self, frontend: Frontend, explore: Explore) -> Iterator[Way]:
        """Yield the routes that traversals find."""
        regions: dict[Source, Region | None] = {s: self._parts.region(s) for s in _KINDS}
        ways = self._ways(regions, explore)
        found: list[Route] = []
        for source in _KINDS:
            for route, address in self._of_parts(frontend, source, regions[source], ways[source]):
                found.append(route)
                yield route, address
        # If the node's addresses are not known, an endpoint's may be one of them.
        within = {
            s: r
            for s in dict.fromkeys((*self._alike, *_LIKE_PODS))
            if (r := regions[s]) is not None and (self._own or not ways[s].asks_own_sources)
        }
        pods = {s: (r, self._walks.as_hairpin(ways[s])) for s, r in within.items()}
        yield _open_as(self._hairpin(frontend, found, pods, explore), found), None

    def _ways(
        self, regions: Mapping[Source, Region | None], explore: Explore
    ) -> dict[Source, Explored]:
        """Return the ways of flows from each kind of source, one traversal for as many as possible.

        Flows that come in differ only in their source, the bridge ports that they pass and
        the devices by which they come in.
        """
        alike = self._alike
        # All among the same sources, since what rules do to these need not be evaluated again.
        every = self._of(None)
        of = self._together(regions[source] for source in alike)
        ways = dict.fromkeys(alike, explore(alike[0], of, None, every))
        for source, region in regions.items():
            if source not in ways:
                ways[source] = explore(source, self._of(region), None, every)
        return ways

    def _together(self, regions: Iterable[Region | None]) -> Region:
        every = (interval for region in regions for interval in self._of(region).intervals)
        return Region(self._version, joined(every))

    @property
    def _alike(self) -> tuple[Source, ...]:
        """The kinds of sources whose flows differ only in their source address."""
        if self._walks.asks_where_from:
            return (Source.POD,)
        return _LIKE_PODS if self._walks.asks_bridges else (*_LIKE_PODS, Source.EXTERNAL)

    def _of(self, region: Region | None) -> Region:
        """Return the addresses of sources; all addresses if they are not known."""
        return region or Region(self._version, (everything(self._version),))

    def _of_parts(
        self,
        frontend: Frontend,
        source: Source,
        region: Region | None,
        ways: Explored,
    ) -> Iterator[Way]:
        """Yield the routes of each part of a kind of source with results of its own."""
        parts = self._parts.alike(source, ways.asked(region))
        named = [part for part in parts if part.network is not None]
        folded = len(named) * len(ways.endpoints) > _MOST_TOLD
        if folded:
            self._walks.note(_TOO_MANY)
            parts = self._parts.alike(source, ways.asked_of_shares(region))
        known: dict[Hashable, Route] = {}
        kept: list[SourcePart] = []
        for part in parts:
            if part.key not in known:
                route = ways.route(frontend, source, part.address, None, region)
                if folded:
                    shares = tuple([replace(share, masquerade=None) for share in route.shares])
                    route = replace(route, shares=shares)
                known[part.key] = route
            around = None if part.around is None else known[part.around]
            if around is None or not _is_same(known[part.key], around, part.address):
                kept.append(part)
        for part in as_one(kept):
            route = replace(known[part.key], network=part.network, also=part.also)
            yield route, part.address

    def _hairpin(
        self,
        frontend: Frontend,
        routes: Sequence[Route],
        within: Mapping[Source, tuple[Region, Explored]],
        explore: Explore,
    ) -> Route:
        """Return, for each endpoint, the share of its own flows that return to it."""
        endpoints = dict.fromkeys(s.endpoint for route in routes for s in route.shares)
        ways: dict[Address, Explored] = {}
        rest: dict[tuple[Source, Side | None], list[Address]] = {}
        for address in dict.fromkeys(endpoint.address for endpoint in endpoints):
            if address in self._own:
                rest.setdefault((Source.NODE, None), []).append(address)
                continue
            side = self._walks.after_dnat.side_of(address)
            held = (
                walked
                for source, (region, walked) in within.items()
                # Networks of pods may overlap: an address in that of this node may be elsewhere.
                if address in region and (side is SIDES[source] or not self._walks.asks_where_from)
            )
            known = next(held, None)
            if known is None:
                way = Source.HAIRPIN, side
                rest.setdefault(way, []).append(address)
            else:
                ways[address] = known
        for (source, side), addresses in rest.items():
            numbers = joined((int(address), int(address)) for address in addresses)
            region = Region(addresses[0].version, numbers)
            ways |= dict.fromkeys(addresses, explore(source, region, side, None))
        found: list[Share] = []
        unresolved = NEVER
        for endpoint in endpoints:
            share, open_ = ways[endpoint.address].share(endpoint, endpoint.address)
            unresolved = max(unresolved, open_)
            found += [] if share is None else [share]
        return Route(frontend, Source.HAIRPIN, tuple(found), unresolved)


def _is_same(one: Route, other: Route, address: Address | None) -> bool:
    """Return whether two routes have the same results, except for hairpin flows of `address`."""

    def told(share: Share) -> Share:
        itself = share.endpoint.address == address
        return replace(share, masquerade=None) if itself else share

    shares = [[told(share) for share in route.shares] for route in (one, other)]
    return shares[0] == shares[1] and (one.unresolved, one.astray) == (
        other.unresolved,
        other.astray,
    )


def _open_as(hairpin: Route, others: Iterable[Route]) -> Route:
    """Return a hairpin route as open as the others: flows of unknown endpoints may return too."""
    unresolved = max([hairpin.unresolved, *[route.unresolved for route in others]])
    return replace(hairpin, unresolved=unresolved) if unresolved else hairpin
