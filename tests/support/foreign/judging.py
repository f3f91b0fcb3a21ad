"""Holds the routes of Services against the naive interpreters, source by source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from ipaddress import ip_address
from itertools import islice
from random import Random

from analyzer.failure.models import Dead
from analyzer.failure.route_loss import route_loss
from analyzer.kubeproxy.view import (
    Endpoint,
    Frontend,
    FrontendKind,
    Route,
    ServicePort,
    Source,
    View,
    each_network,
)
from analyzer.model.addresses import Address
from analyzer.model.endings import EndKind, total
from analyzer.model.probability import Bounds, Dyadic
from analyzer.semantics.base_chains import Rules
from tests.support.foreign.families import FAMILIES
from tests.support.foreign.ground import Ground, rules_of
from tests.support.foreign.naive import Asked, truth

_DEVICES = {Source.POD: "cni0", Source.POD_ELSEWHERE: "eth0", Source.EXTERNAL: "eth0"}


@dataclass(frozen=True)
class _Truths:
    """What becomes of flows behind nat: the sources that they have then, and how many are lost."""

    masks: dict[Endpoint, set[bool]]
    lost: dict[Endpoint, Fraction]


def faults(
    ground: Ground,
    texts: Sequence[str],
    view: View,
    random: Random,
    flows: int = 40,
    before: str | None = None,
) -> Iterator[str]:
    """Give what is wrong about `view`, of the first of `texts` with the others beside it.

    `flows` are asked about, of sources and frontends at random. `before` are the rules as
    kube-proxy wrote them: flows that these send to endpoints are no longer refused, but lost.
    """
    rulesets = [rules_of(text) for text in texts]
    written = [] if before is None else [rules_of(before)]
    ways = [
        (service, frontend)
        for service in view.services
        for frontend in service.frontends
        if {e.address.version for e in service.endpoints} == {ground.version}
    ]
    if not ways:
        return
    for _ in range(flows):
        service, frontend = random.choice(ways)
        source, address = random.choice(list(_sources(ground, service, random)))
        yield from _faults_of(ground, rulesets, written, service, frontend, source, address)


def _sources(
    ground: Ground, service: ServicePort, random: Random
) -> Iterator[tuple[Source, Address]]:
    for source, networks in (
        (Source.POD, ground.pods_here),
        (Source.POD_ELSEWHERE, (*ground.pods_elsewhere, *ground.pods_of_none)),
    ):
        for network in networks:
            for part in (
                network,
                *network.subnets(min(2, network.max_prefixlen - network.prefixlen)),
            ):
                yield source, part[random.randrange(1, part.num_addresses - 1)]
    for address in ground.own[:1]:
        yield Source.NODE, address
    for text in FAMILIES[ground.version].outside:
        yield Source.EXTERNAL, ip_address(text)
    for endpoint in service.endpoints:
        kind = _kind(ground, endpoint.address)
        if kind is not None:
            yield kind, endpoint.address


def _device_of(ground: Ground, endpoint: Address) -> str:
    """Return the device behind which an endpoint of another host or of a pod is."""
    is_here = ground.cluster.placement(endpoint).node == ground.node
    return _DEVICES[Source.POD if is_here else Source.EXTERNAL]


def _kind(ground: Ground, address: Address) -> Source | None:
    if address in ground.own:
        return None
    if any(address in n for n in ground.pods_here):
        return Source.POD
    return Source.POD_ELSEWHERE if any(address in n for n in ground.pods_elsewhere) else None


def _faults_of(
    ground: Ground,
    rulesets: Sequence[Rules],
    written: Sequence[Rules],
    service: ServicePort,
    frontend: Frontend,
    source: Source,
    address: Address,
) -> Iterator[str]:
    route = _route_of(service.routes, frontend, source, address)
    place = f"{service.name.text} {frontend} from {source.value} {address}"
    hairpin = _route_of(service.routes, frontend, Source.HAIRPIN, None)
    asked = Asked(
        source=address,
        destination=frontend.address or ground.own[0],
        port=frontend.port or 0,
        protocol=service.protocol,
        device=_DEVICES.get(source, ""),
        made_here=source is Source.NODE,
        device_of=lambda of: _device_of(ground, of),
        is_pod_here=source is Source.POD,
    )
    # What KUBE-PROXY-FIREWALL drops is taken for flows from sources that a Service does not admit.
    is_guarded = frontend.kind is FrontendKind.LOAD_BALANCER_IP
    admitted = bool(written) and not is_guarded and None not in truth(written, ground.own, asked)
    if route is None:
        refused = dict(service.refusals).get(frontend) is not None or frontend in service.unfilled
        if admitted or not refused:
            yield f"{place}: no route tells of it"
        return
    found = truth(rulesets, ground.own, asked)
    ends: dict[Endpoint, Fraction] = {}
    masks: dict[Endpoint, set[bool]] = {}
    lost: dict[Endpoint, Fraction] = {}
    for end, share in found.items():
        if end is not None:
            endpoint = Endpoint(end.address, end.port)
            ends[endpoint] = ends.get(endpoint, Fraction(0)) + share
            if end.masqueraded is not None:
                masks.setdefault(endpoint, set()).add(end.masqueraded)
            else:
                lost[endpoint] = lost.get(endpoint, Fraction(0)) + share
    truths = _Truths(masks, lost)
    others = {e: s for e, s in ends.items() if e.address != address}
    itself = {e: s for e, s in ends.items() if e.address == address}
    yield from _differ(place, route, others, truths, besides=address)
    if not itself and frontend not in service.unfilled:
        yield from _loss(place, route, ends, truths, admitted=admitted)
    if hairpin is not None and source is not Source.NODE:
        theirs = [s.endpoint for s in hairpin.shares if s.endpoint.address == address]
        for endpoint in {*itself, *theirs}:
            yield from _share(f"{place} (itself)", hairpin, endpoint, itself, truths)


def _route_of(
    routes: Iterable[Route], frontend: Frontend, source: Source, address: Address | None
) -> Route | None:
    """Return the route of the narrowest network that holds an address."""
    holding = [
        route
        for route in each_network(routes)
        if route.frontend == frontend
        and route.source is source
        and (route.network is None or (address is not None and address in route.network))
    ]
    return max(
        holding, key=lambda r: -1 if r.network is None else r.network.prefixlen, default=None
    )


def _differ(
    place: str,
    route: Route,
    ends: dict[Endpoint, Fraction],
    truths: _Truths,
    besides: Address,
) -> Iterator[str]:
    named = [s.endpoint for s in route.shares if s.endpoint.address != besides]
    for endpoint in {**dict.fromkeys(ends), **dict.fromkeys(named)}:
        yield from _share(place, route, endpoint, ends, truths)


def _share(
    place: str,
    route: Route,
    endpoint: Endpoint,
    ends: dict[Endpoint, Fraction],
    truths: _Truths,
) -> Iterator[str]:
    real = ends.get(endpoint, Fraction(0))
    told = next((share for share in route.shares if share.endpoint == endpoint), None)
    if told is None:
        if real > route.unresolved.as_fraction():
            yield f"{place}: {endpoint} is drawn for {real}, and not told"
        return
    low, high = told.share.lower.as_fraction(), told.share.upper.as_fraction()
    if not low <= real <= high:
        yield f"{place}: {endpoint} is drawn for {real}, told is {low} to {high}"
    really = truths.masks.get(endpoint, set())
    if told.masquerade is not None and really - {told.masquerade}:
        yield f"{place}: {endpoint} is masqueraded: {really}, told is {told.masquerade}"
    if real:
        gone = truths.lost.get(endpoint, Fraction(0)) / real
        least, most = (end.as_fraction() for end in _ends(total(told.lost)))
        if not least <= gone <= most:
            yield f"{place}: {endpoint} loses {gone}, told is {least} to {most}"


def _loss(
    place: str, route: Route, ends: dict[Endpoint, Fraction], truths: _Truths, *, admitted: bool
) -> Iterator[str]:
    """Give what is wrong about the loss of a route with some endpoints dead, or with none.

    Where kube-proxy has `admitted` all flows, it refuses none: what reaches no endpoint is lost.
    """
    every = {**dict.fromkeys(ends), **dict.fromkeys(s.endpoint for s in route.shares)}
    for dead in {frozenset(), frozenset(islice(every, 1)), frozenset(islice(every, 1, None))}:
        found = route_loss(route, Dead(endpoints=dead))
        sent = {e: share - truths.lost.get(e, Fraction(0)) for e, share in ends.items()}
        kept = sum((share for e, share in sent.items() if e not in dead), Fraction(0))
        # Of those that reach no endpoint it is not asked whether kube-proxy refuses them.
        least = sum((s for e, s in ends.items() if e in dead), Fraction(0))
        least += sum((s for e, s in truths.lost.items() if e not in dead), Fraction(0))
        loss, survives = _ends(found.loss), _ends(found.survives)
        # Unresolved flows count as lost only if anything is dead, as `route_loss` says.
        most = loss[1].as_fraction() + (0 if dead else route.unresolved.as_fraction())
        if loss[0].as_fraction() > 1 - kept or most < least:
            yield f"{place}: with {len(dead)} dead it loses {least} to {1 - kept}, told is {loss}"
        if not survives[0].as_fraction() <= kept <= survives[1].as_fraction():
            yield f"{place}: with {len(dead)} dead survive {kept}, told is {survives}"
    nowhere = 1 - sum(ends.values(), Fraction(0))
    told = [each for each in route.astray if not admitted or each[0].kind is not EndKind.REFUSED]
    listed = total(told).upper.as_fraction() + route.unresolved.as_fraction()
    if nowhere > listed:
        yield f"{place}: {nowhere} reach no endpoint, and how is told of {listed}"


def _ends(bounds: Bounds) -> tuple[Dyadic, Dyadic]:
    return bounds.lower, bounds.upper
