"""What routes say of every flow, lost or not, is what `trace` says of it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from ipaddress import ip_address
from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analyzer.kubeproxy.routes.trace import KnownAddresses, PacketTrace, Question, trace
from analyzer.kubeproxy.view import Endpoint, FrontendKind, Route, ServicePort, Source, View
from analyzer.model.addresses import Address
from analyzer.model.endings import PASSES, Ending, EndKind, total
from analyzer.model.packet import Packet
from analyzer.model.probability import Bounds
from tests.support.captures import FIXTURES, ROOT
from tests.support.effort import examples
from tests.support.foreign.ground import Ground, Grounds, rules_of
from tests.support.foreign.rows import Writer

NOISE = ROOT / "fixtures" / "noise"
GROUNDS = Grounds()
WORKER = Ground(FIXTURES / "1.36.2-iptables-legacy/two-node@worker1/iptables-legacy-save.txt")
CLIENTS: dict[int, Address] = {
    each.version: each for each in map(ip_address, ("203.0.113.9", "2001:db8:9::9"))
}
FAMILIES = {4: "ip", 6: "ip6"}
#: Kinds of ends of a trace in which a flow is lost.
LOST = frozenset({"drop", "reject", "unanswered"})
#: Of routes: kinds of endings that are such ends.
ENDED = frozenset({EndKind.DROPPED, EndKind.REJECTED, EndKind.REFUSED, EndKind.UNANSWERED})

#: Least and most.
Range = tuple[Fraction, Fraction]


def check(ground: Ground, texts: list[str], random: Random, flows: int) -> int:
    """Hold some flows to Services against traces; return of how many both are certain."""
    view = ground.view(texts[0], texts[1:])
    of_version = [each for each in view.services if each.version == ground.version]
    ways = [(s, route) for s in of_version for route in s.routes if _is_asked(s, route)]
    certain = 0
    for service, route in random.sample(ways, min(flows, len(ways))):
        for address in _addresses(ground, route, random):
            if not _is_told_by(route, service, address):
                continue
            found = _traced(ground, texts, view, service, route, address)
            certain += _agree(f"{service.name.text} {route.source} {address}", route, found)
    return certain


def _is_asked(service: ServicePort, route: Route) -> bool:
    address = route.frontend.address
    return (
        route.source is not Source.HAIRPIN
        and route.frontend.port is not None
        and route.frontend not in service.unfilled
        and (address is None or address.version == service.version)
        and service.affinity is None
    )


def _addresses(ground: Ground, route: Route, random: Random) -> Iterator[Address]:
    """Give sources of a route that are no endpoints of anybody."""
    match route.source:
        case Source.POD:
            networks = ground.pods_here
        case Source.POD_ELSEWHERE:
            networks = ground.pods_elsewhere
        case Source.NODE:
            yield from ground.own[:1]
            return
        case _:
            yield CLIENTS[ground.version]
            if route.network is not None:
                yield route.network[random.randrange(route.network.num_addresses)]
            return
    for network in networks:
        yield network[network.num_addresses - 3 - random.randrange(20)]


def _is_told_by(route: Route, service: ServicePort, address: Address) -> bool:
    """Tell whether a route is the one of the narrowest network that holds an address."""
    holding = [
        (-1 if network is None else network.prefixlen, each)
        for each in service.routes
        if (each.frontend, each.source) == (route.frontend, route.source)
        for network in each.networks or (None,)
        if network is None or address in network
    ]
    return max(holding, key=lambda found: found[0], default=(0, None))[1] is route


def _traced(
    ground: Ground,
    texts: list[str],
    view: View,
    service: ServicePort,
    route: Route,
    address: Address,
) -> PacketTrace:
    frontend = route.frontend
    ips = {
        f.address for s in view.services for f in s.frontends if f.kind is FrontendKind.CLUSTER_IP
    }
    packet = Packet(
        protocol=service.protocol,
        source=address,
        destination=frontend.address or ground.own[0],
        destination_port=frontend.port,
        in_interface="" if route.source is Source.NODE else None,
    )
    known = KnownAddresses(
        is_outside=lambda of: of in CLIENTS.values() or route.source is Source.EXTERNAL,
        is_cluster_ip=ips.__contains__,
    )
    question = Question(packet=packet, addresses=ground.own, follows_answers=True)
    return trace([rules_of(text) for text in texts], question, FAMILIES[ground.version], known)


def _agree(place: str, route: Route, found: PacketTrace) -> bool:
    """Hold a route against a trace; tell whether both are certain."""
    unresolved = (e.probability for e in found.ends if e.fate.kind == "unresolved")
    open_ = sum((each.upper.as_fraction() for each in unresolved), Fraction(0))
    sent: dict[Endpoint, Range] = {}
    lost: Range = (Fraction(0), Fraction(0))
    for end in found.ends:
        least, most = _range(end.probability)
        if end.fate.kind in LOST:
            lost = lost[0] + least, lost[1] + most
        elif end.fate.kind == "endpoint" and end.fate.address is not None:
            endpoint = Endpoint(end.fate.address, end.fate.port)
            before = sent.get(endpoint, (Fraction(0), Fraction(0)))
            sent[endpoint] = before[0] + least, before[1] + most
    theirs = _range(total(e for e in route.astray if _is_end(e[0])))
    unknown = _range(total(e for e in route.astray if e[0].kind is EndKind.UNKNOWN))[1]
    unknown += route.unresolved.as_fraction()
    told: dict[Endpoint, Range] = {}
    for share in route.shares:
        (low, high), gone = _range(share.share), total(share.lost)
        told[share.endpoint] = (
            low * (~gone.upper).as_fraction(),
            high * (~gone.lower).as_fraction(),
        )
        ended = _range(total(e for e in share.lost if _is_end(e[0])))
        perhaps = _range(total(e for e in share.lost if e[0].kind is EndKind.UNKNOWN))[1]
        theirs = theirs[0] + low * ended[0], theirs[1] + high * (ended[1] + perhaps)
    for endpoint in {*sent, *told}:
        nothing = Fraction(0), Fraction(0)
        mine, other = told.get(endpoint, nothing), sent.get(endpoint, nothing)
        assert _meet(mine, other, unknown + open_), (place, endpoint, mine, other)
    assert _meet(theirs, lost, unknown + open_), (place, "lost", theirs, lost)
    return not open_ and not unknown and theirs[0] == theirs[1] and lost[0] == lost[1]


def _is_end(ending: Ending) -> bool:
    """Tell whether a packet is dropped or rejected, be it that no draw took it before.

    Kube-proxy lets some go on that it has no endpoint for: they end at no Service.
    """
    is_refused = ending.kind in ENDED and ending.how != PASSES
    return is_refused or (ending.kind is EndKind.LEFT_OVER and bool(ending.how))


def _range(bounds: Bounds) -> Range:
    return bounds.lower.as_fraction(), bounds.upper.as_fraction()


def _meet(one: Range, other: Range, slack: Fraction) -> bool:
    most = [min(each[1], Fraction(1)) for each in (one, other)]
    return one[0] <= most[1] + slack and other[0] <= most[0] + slack


@example(450, "nft")  # what a draw leaves over, kube-proxy rejects
@examples(25, 1_500)
@given(st.integers(0, 1 << 30), st.sampled_from(["iptables", "nft", "writing"]))
def test_a_flow_ends_as_trace_tells_it_beside_rules_of_others(seed: int, kind: str) -> None:
    random = Random(seed)  # to repeat what was found
    ground = GROUNDS.one(random, nft=kind == "nft")
    writer = Writer(ground, random)
    if kind == "iptables":
        texts = [writer.iptables()]
    elif kind == "nft":
        made = writer.nft()
        texts = [made.text, *made.beside]
    else:
        texts = [ground.text, writer.writing_table()]
    check(ground, texts, random, 6)


@pytest.mark.parametrize("path", sorted(NOISE.glob("*.txt")), ids=lambda path: path.stem)
def test_a_flow_ends_as_trace_tells_it_on_nodes_with_other_programs(path: Path) -> None:
    assert check(WORKER, [path.read_text()], Random(7), 25) or path.stem == "calico"


@pytest.mark.parametrize("nft", [False, True])
def test_a_flow_ends_as_trace_tells_it_in_captures(*, nft: bool) -> None:
    random = Random(3)  # to ask the same each time
    grounds = [GROUNDS.one(random, nft=nft) for _ in range(4)]
    assert all(check(ground, [ground.text], random, 20) for ground in grounds)
