"""Two dumps, compared as the command compares them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from ipaddress import ip_address

from analyzer.kubeproxy.diff.beside import NonServiceFlows
from analyzer.kubeproxy.diff.changes import Change, EndpointChange, MasqueradeChange, ServiceChange
from analyzer.kubeproxy.diff.difference import Difference, difference
from analyzer.kubeproxy.diff.side import DumpSide
from analyzer.kubeproxy.view import Source
from analyzer.model.addresses import Address
from analyzer.model.cluster import Cluster
from analyzer.model.value import replace
from analyzer.parsers.formats import read_ruleset
from tests.support.captures import Capture
from tests.support.clusters import GeneratedCluster
from tests.support.parsed_objects import parse_objects
from tests.support.reading import recogniser

#: A route as tests name it: kind of frontend, its address and port, and the source.
Named = tuple[str, str, str]


def side_of(
    data: str | bytes,
    cluster: Cluster | None = None,
    own: tuple[Address, ...] = (),
    node: str | None = None,
    version: int = 4,
) -> DumpSide:
    """Return a dump of any backend, of one IP version."""
    ruleset = read_ruleset(data.encode() if isinstance(data, str) else data, "dump.txt")
    known = cluster or Cluster()
    found = recogniser(ruleset, known, node=node, node_addresses=own)
    return DumpSide(
        (ruleset,),
        found.view(),
        known,
        version=version,
        sources=found.source_address,
        own=tuple(address for address in own if address.version == version),
        node_port_address=found.node_port_address(version),
    )


def side_of_capture(
    capture: Capture, version: int = 4, *, text: str | None = None, bare: bool = False
) -> DumpSide:
    """Return a captured dump, or `text` in its place; `bare`: without what its objects tell."""
    data = capture.dump.read_bytes() if text is None else text
    if bare:
        return side_of(data, version=version)
    cluster, node = capture.cluster, capture.node
    return side_of(data, cluster, cluster.nodes[node].addresses, node, version)


def side_of_cluster(cluster: GeneratedCluster) -> DumpSide:
    objects = json.dumps({"kind": "List", "items": cluster.items}).encode()
    known = parse_objects([("objects.json", objects)])
    own = known.nodes[cluster.node].addresses
    return side_of(cluster.dump, known, own, cluster.node, cluster.family)


def compared(a: DumpSide | str, b: DumpSide | str, version: int = 4) -> Difference:
    """Return what differs between two dumps of a node with one address."""
    own = (ip_address("192.0.2.1"),)
    sides = [side_of(each, own=own) if isinstance(each, str) else each for each in (a, b)]
    return difference({version: (sides[0], sides[1])})


def only_change(found: Difference) -> ServiceChange:
    (change,) = found.changes
    return change


def by_route(change: ServiceChange) -> Iterator[tuple[Named, Change]]:
    """Give what differs on each route, by its name."""
    for each in change.routes:
        for way in each.ways:
            network = "" if way.network is None else f" {way.network}"
            kind, source = way.frontend.kind.value, f"{way.source.value}{network}"
            yield (kind, str(way.frontend), source), each.change


def mirrored(found: Difference) -> Difference:
    """Return what differs from B to A, made of what differs from A to B."""
    return replace(
        found,
        changes=tuple([_mirrored_service(each) for each in found.changes]),
        beside=tuple([_mirrored_beside(each) for each in found.beside]),
    )


def _mirrored_service(change: ServiceChange) -> ServiceChange:
    affinity = None if change.affinity is None else change.affinity[::-1]
    routes = tuple([replace(r, change=_mirrored_change(r.change)) for r in change.routes])
    return replace(
        change,
        a=change.b,
        b=change.a,
        gone=change.added,
        added=change.gone,
        affinity=affinity,
        routes=routes,
    )


def _mirrored_change(change: Change) -> Change:
    return replace(
        change,
        endpoints=tuple([EndpointChange(e.endpoint, e.b, e.a) for e in change.endpoints]),
        each=None if change.each is None else change.each[::-1],
        masquerade=tuple([MasqueradeChange(m.endpoint, m.b, m.a) for m in change.masquerade]),
        otherwise=None if change.otherwise is None else change.otherwise[::-1],
    )


def _mirrored_beside(each: NonServiceFlows) -> NonServiceFlows:
    return replace(each, a=each.b, b=each.a, rules_a=each.rules_b, rules_b=each.rules_a)


def in_any_order(found: Difference) -> object:
    """Return a difference that equals others of the same parts, whatever their order."""
    services = {
        (
            each.name.text,
            each.protocol,
            frozenset((f.address, f.port) for f in each.gone),
            frozenset((f.address, f.port) for f in each.added),
            each.affinity,
            frozenset(
                (
                    way.frontend.address,
                    way.frontend.port,
                    way.source,
                    way.network,
                    frozenset(route.change.endpoints),
                    route.change.each,
                    frozenset(route.change.masquerade),
                    route.change.otherwise,
                    frozenset(route.change.unknown),
                )
                for route in each.routes
                for way in route.ways
            ),
        )
        for each in found.changes
    }
    beside = {(each.topic, frozenset(each.sources), each.a, each.b) for each in found.beside}
    return services, beside, found.both, found.alike, found.verdict


def sources(change: ServiceChange) -> set[Source]:
    return {way.source for route in change.routes for way in route.ways}
