"""The data from which a page computes losses: each node's share of each ServicePort.

`release/pages/src/incidence.js` reads it, and does what `failure/loss` does. Shares are exact:
draws out of 2**31 where draws give them, else numerators in hexadecimal over powers of two. Names
are safe to show. An endpoint is named once for each ServicePort, a distribution once for all.
Records are lists, not objects, since there may be a hundred thousand of them:

    service = [name, protocol as PROTO shows it, endpoints, place of each, frontends, variants]
    variant = [nodes that have it (a place in "groups") | null, draws, routes, its endpoints]
    draw    = [distribution, endpoints drawn | null: all in order, lost of each behind DNAT | null]
    route   = [frontend, source, network | null, draw, unresolved | 0, 1: unfilled, astray | 0,
               0 or of hairpin flows, for each endpoint: null or
                   [what it loses of them to rules, the route of all its flows | null],
               if any: the greatest share that goes astray and may not count as lost]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from analyzer.failure.hairpin_loss import route_of_sender
from analyzer.failure.models import Dead
from analyzer.failure.route_loss import Count, away, counted, reaches_none, uncounted
from analyzer.kubeproxy.view import Endpoint, Route, ServicePort, Source
from analyzer.model.cluster import Cluster
from analyzer.model.endings import Endings, total
from analyzer.model.probability import Bounds, Dyadic
from analyzer.model.text import printable
from analyzer.model.value import value
from analyzer.reports.json_distributions import draws_of
from analyzer.reports.json_values import encode
from analyzer.reports.phrases import proto
from analyzer.reports.route_networks import networks

#: A ServicePort as some nodes have it; None: the dump's, whatever is dead.
Variant = tuple[ServicePort, "frozenset[str] | None"]

_SOURCES: Final = {source: at for at, source in enumerate(Source)}


@value(kw_only=True)
class LossInput:
    """What losses are computed from.

    Attributes:
        services: the variants of each ServicePort over all nodes.
        dead: what is dead to begin with.
        named: the endpoints that were declared dead one by one.
        is_whole: whether nothing selected is left out; own: the node whose dump it is.
        is_together: whether bounds are over all nodes, not those of the worst one.
    """

    services: Sequence[Sequence[Variant]]
    cluster: Cluster
    dead: Dead | None = None
    named: frozenset[Endpoint] = frozenset()
    count: Count = Count.ALL
    is_together: bool = False
    is_whole: bool = True
    own: str | None = None


def incidence(asked: LossInput) -> Iterator[str]:
    """Yield one JSON document, in pieces."""
    writer = _Writer(asked.cluster)
    dead = asked.dead
    yield '{"services":['
    before = ""
    for variants in asked.services:
        yield before + encode(writer.service(variants))
        before = ",\n"
    yield '],"distributions":['
    yield ",\n".join(writer.distributions)
    nodes = {name: at for at, name in enumerate(writer.nodes)}
    zones = {name: at for at, name in enumerate(writer.zones)}
    of_nodes = [asked.cluster.zone_of(name) for name in writer.nodes]
    rest = {
        "places": list(writer.places),
        "groups": [sorted(nodes[n] for n in group) for group in writer.groups],
        "nodes": [printable(name) for name in nodes],
        "zones": [printable(name) for name in zones],
        "node_zones": [-1 if zone is None else zones[zone] for zone in of_nodes],
        "sources": [source.value for source in Source],
        "count": asked.count.value,
        "together": asked.is_together,
        "whole": asked.is_whole,
        "own": None if asked.own is None else nodes.get(asked.own),
        "dead": {
            "nodes": [nodes[name] for name in dead.nodes] if dead else [],
            "zones": [zones[name] for name in dead.zones] if dead else [],
            "named": [printable(name) for name in dead.named] if dead else [],
            "endpoints": sorted(map(str, asked.named)),
        },
    }
    yield f"],{encode(rest)[1:]}"


class _Writer:
    """Writes ServicePorts, and gathers what they refer to."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.nodes = sorted(cluster.node_names)
        self.zones = sorted(cluster.zones)
        self._node = {name: at for at, name in enumerate(self.nodes)}
        self._zone = {name: at for at, name in enumerate(self.zones)}
        self._of_address: dict[object, int] = {}
        self.places: dict[tuple[int, int], int] = {}
        self.groups: dict[frozenset[str], int] = {}
        self.distributions: dict[str, int] = {}
        # By identity; the lists are kept, so that no other gets theirs.
        self._known: dict[int, tuple[object, int]] = {}

    def service(self, variants: Sequence[Variant]) -> list[Any]:
        """Return one ServicePort, as some nodes have it."""
        first = variants[0][0]
        endpoints = list(dict.fromkeys(e for service, _ in variants for e in service.endpoints))
        at = {endpoint: number for number, endpoint in enumerate(endpoints)}
        frontends = list(dict.fromkeys(f for service, _ in variants for f in service.frontends))
        return [
            printable(first.name.text),
            proto(first.protocol, first.version),
            list(map(str, endpoints)),
            [self._place(endpoint) for endpoint in endpoints],
            [f"{each.kind.value} {each}" for each in frontends],
            [
                [self._group(nodes), *_Variant(self, service, at, frontends).told()]
                for service, nodes in variants
            ],
        ]

    def distribution(self, shares: Sequence[Bounds]) -> int:
        """Return the index of a distribution."""
        known = self._known.get(id(shares))
        if known is None:
            text = encode(_distribution(shares))
            known = shares, self.distributions.setdefault(text, len(self.distributions))
            self._known[id(shares)] = known
        return known[1]

    def _place(self, endpoint: Endpoint) -> int:
        address = endpoint.address
        if address not in self._of_address:
            where = self._cluster.placement(address)
            place = (
                -1 if where.node is None else self._node[where.node],
                -1 if where.zone is None else self._zone[where.zone],
            )
            self._of_address[address] = self.places.setdefault(place, len(self.places))
        return self._of_address[address]

    def _group(self, nodes: frozenset[str] | None) -> int | None:
        if nodes is None or not nodes.issubset(self._node):
            return None  # of a node that cannot be declared dead
        return self.groups.setdefault(nodes, len(self.groups))


class _Variant:
    """Writes a ServicePort as some nodes have it."""

    def __init__(
        self,
        writer: _Writer,
        service: ServicePort,
        at: Mapping[Endpoint, int],
        frontends: Sequence[object],
    ) -> None:
        self._writer = writer
        self._service = service
        self._at = at
        self._frontend = {each: number for number, each in enumerate(frontends)}
        self._numbers: dict[tuple[int, int], tuple[int, object]] = {}
        self._draws: list[list[Any]] = []

    def told(self) -> tuple[list[list[Any]], list[list[Any]], int]:
        """Return the draws, their routes, and the number of endpoints."""
        every = [*self._service.routes]
        routes = [r for r in every if r.source is not Source.HAIRPIN]
        numbers = {id(r): at for at, r in enumerate(routes) if r.source is Source.POD}
        pods = [routes[at] for at in numbers.values()]
        told = [self._route(route, 0) for route in routes]
        told += [
            self._route(route, _hairpins(route, pods, numbers))
            for route in every
            if route.source is Source.HAIRPIN and route.losses()
        ]
        return self._draws, told, len(self._service.endpoints)

    def _route(self, route: Route, hairpins: object) -> list[Any]:
        lost = route.losses()
        counts = counted(route)
        _, shares = route.draws()
        nowhere = reaches_none(shares, route.unresolved)
        spared = uncounted(route, nowhere)
        return [
            self._frontend[route.frontend],
            _SOURCES[route.source],
            networks(route) or None,
            self._draw(route, [_lost(each) for each in lost]),
            _dyadic(route.unresolved) if route.unresolved else 0,
            int(route.frontend in self._service.unfilled),
            _bounds(away(counts, nowhere, spared)) if counts else 0,
            hairpins,
            *([_dyadic(spared)] if spared else []),
        ]

    def _draw(self, route: Route, lost: list[list[Any] | None]) -> int:
        endpoints, shares = route.draws()
        gone = lost if any(lost) else None
        key = id(endpoints), id(shares)
        if gone is None and key in self._numbers:
            return self._numbers[key][0]
        order: list[int] | None = [self._at[each] for each in endpoints]
        if order == [*range(len(self._at))]:
            order = None
        draw = [self._writer.distribution(shares), order, gone]
        number = self._draws.index(draw) if draw in self._draws else len(self._draws)
        if number == len(self._draws):
            self._draws.append(draw)
        if gone is None:
            self._numbers[key] = number, (endpoints, shares)
        return number


def _hairpins(
    hairpin: Route, pods: Sequence[Route], numbers: Mapping[int, int]
) -> list[list[Any] | None]:
    endpoints, lost = hairpin.draws()[0], hairpin.losses()
    return [
        [told, numbers.get(id(route_of_sender(endpoint, hairpin, pods)))] if told else None
        for endpoint, told in zip(endpoints, map(_lost, lost), strict=True)
    ]


def _distribution(shares: Sequence[Bounds]) -> dict[str, Any]:
    exact = all(share.is_exact for share in shares)
    drawn = draws_of([share.lower for share in shares]) if exact else None
    if drawn is None:
        return {"shares": [_bounds(share) for share in shares]}
    found: dict[str, Any] = {"draws": list(drawn.thresholds), "size": len(shares)}
    if drawn.order != tuple(range(len(shares))):
        found["order"] = list(drawn.order)
    return found


def _lost(endings: Endings) -> list[Any] | None:
    return _bounds(total(endings)) if endings else None


def _bounds(bounds: Bounds) -> list[Any]:
    lower = _dyadic(bounds.lower)
    return lower if bounds.is_exact else lower + _dyadic(bounds.upper)


def _dyadic(share: Dyadic) -> list[Any]:
    return [hex(share.numerator), share.exponent]
