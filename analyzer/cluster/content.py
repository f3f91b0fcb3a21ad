"""ServicePorts as rows of tables, keyed by a hash of their content, and back again.

Theory of operation
===================

Nodes of one cluster say nearly the same. What a dump says of one ServicePort is written as rows
of plain values and called by the digest of these rows; lists of endpoints and lists of shares are
called by digests of their own, so that a thousand Services of three endpoints have one list of
shares. A node is then a map from ServicePorts to digests. So that two nodes which differ in one
Service share all the rest of their maps too, a map is cut into blocks by the ServicePorts' names,
and is called by the digests of its blocks.

Where in its file a rule stands is left out: a digest says what rules do, and a rule that does the
same in another line does the same. Endings that differ in their place alone are equal anyway.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b

from analyzer.kubeproxy.names import ServiceName
from analyzer.kubeproxy.view import (
    Endpoint,
    Frontend,
    FrontendKind,
    LazyShares,
    Route,
    ServicePort,
    Share,
    Source,
    each_network,
)
from analyzer.model.addresses import address_from_text, network_from_text
from analyzer.model.endings import Ending, Endings, EndKind
from analyzer.model.probability import Bounds, Dyadic
from analyzer.model.value import fields_of, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, TypeAlias

    from analyzer.model.addresses import Address, Network

    #: A row of a table, in the order of its columns.
    TableRow: TypeAlias = tuple[Any, ...]

#: Bytes of a digest: two contents of one name would take 2**64 of them.
_BYTES: Final = 16
#: Blocks of a map: one Service that differs makes one new block of them.
BLOCKS: Final = 256


def digest_of(said: object) -> str:
    """Return the digest of a content, in hexadecimal; `said` is what JSON can write."""
    text = json.dumps(said, separators=(",", ":"), ensure_ascii=True)
    return blake2b(text.encode("ascii"), digest_size=_BYTES).hexdigest()


@value(kw_only=True)
class New:
    """Contents by digest, as rows: for each table, those that a reader has not returned before."""

    service_ports: dict[str, TableRow]
    routes: dict[str, tuple[TableRow, ...]]
    endpoints: dict[str, tuple[TableRow, ...]]
    distributions: dict[str, tuple[TableRow, ...]]
    blocks: dict[str, tuple[str, ...]]
    maps: dict[str, tuple[str, ...]]

    @classmethod
    def nothing(cls) -> New:
        """Return an empty one."""
        return cls(service_ports={}, routes={}, endpoints={}, distributions={}, blocks={}, maps={})

    def add(self, other: New) -> None:
        """Add the contents of another; those with the same digest are equal."""
        for name in fields_of(New):
            getattr(self, name).update(getattr(other, name))


class Encoder:
    """Writes ServicePorts as rows, each content once.

    `new` holds what was not `given` yet; who has passed it on calls `taken`.
    """

    def __init__(self) -> None:
        self.new = New.nothing()
        self._given: set[str] = set()
        self._lists: dict[tuple[str, ...], str] = {}
        #: By identity; the lists are kept, so that no other gets theirs.
        self._shares: dict[int, tuple[object, str]] = {}
        self._ends: dict[int, tuple[object, str]] = {}

    def forget(self) -> None:
        """Return everything again: what was returned before has been lost."""
        self.__init__()  # type: ignore[misc]  # all of it, as if nothing had been

    def taken(self) -> New:
        """Return what is new, and mark it as returned."""
        new, self.new = self.new, New.nothing()
        self._shares.clear()  # of lists of one dump
        self._ends.clear()
        return new

    def encode(self, service: ServicePort) -> str:
        """Return the digest of a ServicePort, whose rows are then among those new or returned."""
        frontends = [_frontend(each) for each in service.frontends]
        at = {frontend: number for number, frontend in enumerate(service.frontends)}
        head = (
            *_name(service.name),
            service.protocol,
            service.version,
            service.affinity,
            _json(frontends),
            _json([[at[frontend], how] for frontend, how in service.refusals]),
            _json([at[frontend] for frontend in service.unfilled]),
        )
        every = [*each_network(service.routes)]
        routes = [self._route(route, at) for route in every]
        found = digest_of([head, routes])
        if found not in self._given:
            self._given.add(found)
            self.new.service_ports[found] = (found, *head)
            self.new.routes[found] = tuple(
                (found, number, *_frontend(route.frontend), *row)
                for number, (route, row) in enumerate(zip(every, routes, strict=True))
            )
        return found

    def _route(self, route: Route, at: Mapping[Frontend, int]) -> TableRow:
        endpoints, shares = route.draws()
        masquerades = route.masquerades()
        if len(set(masquerades)) == 1:
            masquerades = masquerades[:1]
        lost = route.losses()
        return (
            at[route.frontend],
            route.source.value,
            None if route.network is None else str(route.network),
            self._endpoints(endpoints),
            self._distribution(shares),
            hex(route.unresolved.numerator),
            route.unresolved.exponent,
            list(masquerades),
            _json(_endings(route.astray)) if route.astray else None,
            _json([_endings(each) for each in lost]) if lost else None,
        )

    def _endpoints(self, endpoints: Sequence[Endpoint]) -> str:
        known = self._ends.get(id(endpoints))
        if known is not None:
            return known[1]
        printed = tuple([str(each) for each in endpoints])
        found = self._lists.get(printed)
        if found is None:
            found = self._lists[printed] = digest_of(["endpoints", printed])
        self._ends[id(endpoints)] = endpoints, found
        if found not in self._given:
            self._given.add(found)
            self.new.endpoints[found] = tuple(
                (found, number, str(each.address), each.port)
                for number, each in enumerate(endpoints)
            )
        return found

    def _distribution(self, shares: Sequence[Bounds]) -> str:
        known = self._shares.get(id(shares))
        if known is not None:
            return known[1]
        rows = [_bounds(each) for each in shares]
        found = digest_of(["distribution", rows])
        self._shares[id(shares)] = shares, found
        if found not in self._given:
            self._given.add(found)
            self.new.distributions[found] = tuple(
                (found, number, *row, float(each.lower), float(each.upper))
                for number, (row, each) in enumerate(zip(rows, shares, strict=True))
            )
        return found

    def block(self, digests: Iterable[str]) -> str:
        """Return the digest of a block of a map: of ServicePorts, in any order."""
        held = tuple(sorted(digests))
        found = digest_of(["block", held])
        if found not in self._given:
            self._given.add(found)
            self.new.blocks[found] = held
        return found

    def map(self, blocks: Iterable[str]) -> str:
        """Return the digest of a map, from those of its blocks."""
        held = tuple(sorted(blocks))
        found = digest_of(["map", held])
        if found not in self._given:
            self._given.add(found)
            self.new.maps[found] = held
        return found


def block_of(service: ServicePort) -> int:
    """Return the number of the block that a ServicePort is in, the same at every node."""
    text = f"{service.name.text} {service.protocol} {service.version}"
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=1).digest()[0] % BLOCKS


# --- values as rows -----------------------------------------------------------------


def _json(said: object) -> str:
    return json.dumps(said, separators=(",", ":"), ensure_ascii=True)


def _name(name: ServiceName) -> TableRow:
    return name.text, name.namespace, name.service, name.port


def _frontend(frontend: Frontend) -> list[object]:
    address = None if frontend.address is None else str(frontend.address)
    return [frontend.kind.value, address, frontend.port]


def _bounds(bounds: Bounds) -> TableRow:
    lower, upper = bounds.lower, bounds.upper
    return hex(lower.numerator), lower.exponent, hex(upper.numerator), upper.exponent


def _endings(endings: Endings) -> list[object]:
    return [
        [e.kind.value, e.how, e.rule, e.chain, e.table, *_bounds(bounds)] for e, bounds in endings
    ]


# --- rows as values -----------------------------------------------------------------


@value
class Lists:
    """Lists of endpoints and of shares, by their names."""

    endpoints: Mapping[str, tuple[Endpoint, ...]]
    distributions: Mapping[str, tuple[Bounds, ...]]


def endpoint_from_row(address: str, port: int | None) -> Endpoint:
    """Return an endpoint of a list.

    Raises:
        ValueError: it is none.
    """
    return Endpoint(_address(address), port)


def bounds_from_row(lower: str, at_least: int, upper: str, at_most: int) -> Bounds:
    """Return the bounds on a share, of their numerators in hexadecimal and their exponents.

    Raises:
        ValueError: they are none.
    """
    found = Dyadic.of(int(lower, 16), at_least)
    if (lower, at_least) == (upper, at_most):
        return Bounds(found, found)
    return Bounds(found, Dyadic.of(int(upper, 16), at_most))


def service_from_rows(row: TableRow, routes: Iterable[TableRow], lists: Lists) -> ServicePort:
    """Return a ServicePort; `routes` are its rows in order, of columns from the frontend on.

    Raises:
        ValueError: a row is none that `Encoder` writes.
        KeyError: a list is not there.
    """
    _, text, namespace, service, port, protocol, _, affinity, frontends, refusals, unfilled = row
    known = tuple([_frontend_of(*each) for each in json.loads(frontends)])
    return ServicePort(
        name=ServiceName(namespace, service, port, text),
        protocol=protocol,
        frontends=known,
        routes=tuple([_route_of(each, known, lists) for each in routes]),
        affinity=affinity,
        refusals=tuple([(known[at], how) for at, how in json.loads(refusals)]),
        unfilled=tuple([known[at] for at in json.loads(unfilled)]),
    )


def _frontend_of(kind: str, address: str | None, port: int | None) -> Frontend:
    return Frontend(FrontendKind(kind), None if address is None else _address(address), port)


def _address(text: str) -> Address:
    found = address_from_text(text)
    if found is None:
        raise ValueError(f"{text!r} is not an address")
    return found


def _network(text: str | None) -> Network | None:
    return None if text is None else network_from_text(text)


def _route_of(row: TableRow, frontends: Sequence[Frontend], lists: Lists) -> Route:
    at, source, network, endpoints, shares, numerator, exponent, masquerades, astray, lost = row
    drawn = lists.endpoints[endpoints]
    if len(masquerades) == 1 and len(drawn) > 1:
        masquerades = masquerades * len(drawn)
    return Route(
        frontend=frontends[at],
        source=Source(source),
        shares=StoredShares(
            drawn,
            lists.distributions[shares],
            tuple(masquerades),
            () if lost is None else tuple([_endings_of(each) for each in json.loads(lost)]),
        ),
        unresolved=Dyadic.of(int(numerator, 16), exponent),
        network=_network(network),
        astray=() if astray is None else _endings_of(json.loads(astray)),
    )


def _endings_of(rows: Iterable[Sequence[Any]]) -> Endings:
    return tuple(
        [
            (
                Ending(kind=EndKind(kind), how=how, rule=rule, chain=chain, table=table),
                bounds_from_row(*bounds),
            )
            for kind, how, rule, chain, table, *bounds in rows
        ]
    )


class Contents:
    """ServicePorts by their digests, each kept once, independent of the dump they come from."""

    def __init__(self) -> None:
        self._encoder = Encoder()
        self._endpoints: dict[str, tuple[Endpoint, ...]] = {}
        self._distributions: dict[str, tuple[Bounds, ...]] = {}
        self.services: dict[str, ServicePort] = {}

    def keep(self, services: Iterable[ServicePort]) -> tuple[str, ...]:
        """Return the digests of ServicePorts, in their order."""
        found = tuple([self._encoder.encode(each) for each in services])
        new = self._encoder.taken()
        for name, rows in new.endpoints.items():
            self._endpoints[name] = tuple([endpoint_from_row(*row[2:]) for row in rows])
        for name, rows in new.distributions.items():
            self._distributions[name] = tuple([bounds_from_row(*row[2:6]) for row in rows])
        lists = Lists(self._endpoints, self._distributions)
        for digest, row in new.service_ports.items():
            # After its name, its place, and its frontend as in tables.
            routes = [each[5:] for each in new.routes[digest]]
            self.services[digest] = service_from_rows(row, routes, lists)
        return found


class StoredShares(LazyShares):
    """Shares of one route, decoded on access; routes with the same lists share them."""

    __slots__ = ("_endpoints", "_lost", "_masquerades", "_shares")

    def __init__(
        self,
        endpoints: tuple[Endpoint, ...],
        shares: tuple[Bounds, ...],
        masquerades: tuple[bool | None, ...],
        lost: tuple[Endings, ...],
    ) -> None:
        if not len(endpoints) == len(shares) == len(masquerades):
            raise ValueError(f"{len(endpoints)} endpoints have {len(shares)} shares")
        self._endpoints = endpoints
        self._shares = shares
        self._masquerades = masquerades
        self._lost = lost

    def draws(self) -> tuple[Sequence[Endpoint], Sequence[Bounds]]:
        """Return the endpoints and their shares, without making a `Share`."""
        return self._endpoints, self._shares

    def columns(self) -> tuple[Sequence[str], Sequence[Bounds]]:
        """Return the endpoints as they are printed, and their shares."""
        return [str(each) for each in self._endpoints], self._shares

    def masquerades(self) -> Sequence[bool | None]:
        """Return for each endpoint whether its flows are masqueraded."""
        return self._masquerades

    def losses(self) -> Sequence[Endings]:
        """Return for each endpoint how its flows are lost; empty if none are."""
        return self._lost

    def __len__(self) -> int:
        return len(self._endpoints)

    def __iter__(self) -> Iterator[Share]:
        lost = self._lost or ((),) * len(self._endpoints)
        return map(Share, self._endpoints, self._shares, self._masquerades, lost)
