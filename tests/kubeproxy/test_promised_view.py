"""The Services of every capture are those of its objects, for every frontend and source.

Held against `promises`, which derives from objects, flags and version what each flow is promised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analyzer.kubeproxy.dispatch.object_names import ObjectNames
from analyzer.kubeproxy.view import Frontend, Route, ServicePort, View
from analyzer.kubeproxy.view import Source as Kind
from analyzer.model.addresses import Address
from analyzer.model.value import replace
from analyzer.parsers.api_objects import decode
from analyzer.parsers.formats import read_ruleset
from analyzer.parsers.services import parse_services
from tests.support.parsed_objects import parse_objects
from tests.support.promised_flows import OUTSIDE, dumps
from tests.support.promises import Frontend as Promised
from tests.support.promises import Promise, Promises, Source
from tests.support.reading import recogniser

#: Of more frontends a few dozen are looked at, and these many hairpins of each.
_LARGE = 200
_HAIRPINS = 12


def view_of(path: Path, promises: Promises) -> View:
    (objects,) = path.parent.glob("objects.json*")
    files = [(objects.name, objects.read_bytes())]
    cluster = parse_objects(files)
    view = recogniser(
        read_ruleset(path.read_bytes(), path.name),
        cluster,
        node=promises.node,
        node_addresses=cluster.nodes[promises.node].addresses,
        object_names=ObjectNames(lambda: parse_services(decode(files), promises.family)),
    ).view()
    # A ruleset of nft holds both families; each ServicePort has a ClusterIP of its own.
    mine = tuple(s for s in view.services if promises.family in versions(s))
    return replace(view, services=mine)


def versions(service: ServicePort) -> set[int]:
    return {f.address.version for f in service.frontends if f.address is not None}


Key = tuple[str, str, str, Address | None, int | None]


def key_of(promised: Promised) -> Key:
    address = None if promised.kind == "NodePort" else promised.address
    name = promised.service.removesuffix(":")
    return name, promised.protocol, promised.kind, address, promised.port


def keys_of(service: ServicePort) -> dict[Key, Frontend]:
    return {
        (service.name.text, service.protocol, f.kind.value, f.address, f.port): f
        for f in service.frontends
    }


def sources_of(route: Route, promises: Promises, pod_elsewhere: Address | None) -> list[Source]:
    """Return sources that a route speaks of; of a hairpin, each of its endpoints."""
    own = promises.node_addresses
    match route.source:
        case Kind.POD:
            return [Source("a pod here", promises.pod_here())]
        case Kind.POD_ELSEWHERE:
            return [] if pod_elsewhere is None else [Source("a pod elsewhere", pod_elsewhere)]
        case Kind.NODE:
            return [Source("the node", own[0], made_here=True)] if own else []
        case Kind.EXTERNAL if route.network is not None:
            return [Source(f"{route.network}", route.network[1])]
        case Kind.EXTERNAL:
            return [Source("outside", OUTSIDE[promises.family][-1])]
        case Kind.HAIRPIN:
            return [
                Source(f"{s.endpoint}", s.endpoint.address, made_here=s.endpoint.address in own)
                for s in route.shares[:_HAIRPINS]
            ]


def kept(route: Route, source: Source, promise: Promise, promises: Promises) -> bool:
    """Tell whether a route says just what the flow is promised."""
    found = {(s.endpoint.address, s.endpoint.port): s for s in route.shares}
    if route.source is Kind.HAIRPIN:
        found = {place: share for place, share in found.items() if place[0] == source.address}
        masked = {place for place in promise.masqueraded if place[0] == source.address}
        return (
            found.keys() <= promise.endpoints
            and all(s.share.is_exact for s in found.values())
            and {place for place, share in found.items() if share.masquerade} == masked
            and {share.share.lower for share in found.values()}
            <= set(promises.shares(len(promise.endpoints)))
        )
    if not route.is_exact or promise.kind != "endpoint":
        return route.is_exact and not found
    shares = Counter(s.share.lower for s in route.shares)
    return (
        len(found) == len(route.shares)
        and found.keys() == promise.endpoints
        and {place for place, share in found.items() if share.masquerade} == promise.masqueraded
        and not any(share.masquerade is None for share in route.shares)
        and shares == Counter(promises.shares(len(found)))
    )


def elsewhere(path: Path, promises: Promises) -> Address | None:
    """Return an address of another node's pods."""
    (objects,) = path.parent.glob("objects.json*")
    nodes = parse_objects([(objects.name, objects.read_bytes())]).nodes.values()
    networks = [n for node in nodes if node.name != promises.node for n in node.pod_networks]
    found = [n[n.num_addresses - 2] for n in networks if n.version == promises.family]
    return found[0] if found else None


def broken_promises(path: Path, family: int, told: Counter[str]) -> Iterator[str]:
    promises = Promises(path.parent, family)
    place = f"{path.parent.parent.name}/{path.parent.name}/{path.name}"
    view = view_of(path, promises)
    wanted: dict[Key, tuple[Any, Any, Promised]] = {
        key_of(promised): (service, port, promised)
        for service, port, promised in promises.frontends()
    }
    found = {key: (service, f) for service in view.services for key, f in keys_of(service).items()}
    if not promises.node_addresses:  # the objects of such a node name no NodePort
        found = {key: each for key, each in found.items() if key[2] != "NodePort"}
    for key in found.keys() - wanted.keys():
        yield f"{place} {key} is in no object"
    other = elsewhere(path, promises)
    keys = list(wanted)
    for key in keys if len(keys) < _LARGE else keys[:: len(keys) // 40]:
        service, port, promised = wanted[key]
        if key not in found:
            sources = [Source("a pod here", promises.pod_here())]
            kinds = {promises.promise(service, port, promised, s).kind for s in sources}
            if kinds != {"pass"}:
                yield f"{place} {key} is not found: {kinds}"
            continue
        mine, frontend = found[key]
        asked = service["spec"].get("sessionAffinityConfig", {}).get("clientIP", {})
        routes = [r for r in mine.routes if r.frontend == frontend]
        if any(len(r.shares) for r in routes) and mine.affinity != asked.get("timeoutSeconds"):
            yield f"{place} {key}: affinity {mine.affinity}"
        by_bridge = promises.version < (1, 22) and promised.kind == "ExternalIP"
        ends = dict.fromkeys(s.endpoint for r in routes for s in r.shares)
        for route in routes:
            if route.source is Kind.HAIRPIN and len(ends) < _HAIRPINS:
                found_there = {s.endpoint for s in route.shares}
                for end in ends:
                    itself = Source(f"{end}", end.address, end.address in promises.node_addresses)
                    promise = promises.promise(service, port, promised, itself)
                    if ((end.address, end.port) in promise.endpoints) != (end in found_there):
                        yield f"{place} {promised}: {end} and its own flows: {promise}"
            for source in sources_of(route, promises, other):
                promise = promises.promise(service, port, promised, source)
                told[f"{route.source.value} {promise.kind}"] += 1
                holds = kept(route, source, promise, promises)
                if not holds and not (by_bridge and promise.kind == "endpoint"):
                    got = [(str(s.endpoint), s.share, s.masquerade) for s in route.shares[:2]]
                    yield f"{place} {promised} from {source.name}: {promise} {got}"


def test_every_route_is_as_the_objects_promise(captures: Path) -> None:
    told = Counter[str]()
    broken = [text for each in dumps(captures) for text in broken_promises(*each, told)]
    assert broken == []
    assert {f"{kind.value} endpoint" for kind in Kind} <= set(told)
    assert {"external drop", "external pass"} <= set(told)
    assert sum(told.values()) > 8_000
