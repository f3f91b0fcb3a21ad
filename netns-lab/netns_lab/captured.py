"""The flows of a capture to Services of a dump: the route of each, or why it is not replayed.

Each packet belongs to a flow that is replayed, or is counted under one reason. The ends of flows to
Services are kept, so that no later packet is taken for a first one; nothing is kept of other flows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import ip_address
from types import SimpleNamespace
from typing import Final

from analyzer.inputs.recognised import Input
from analyzer.inputs.source_kind import source_kind
from analyzer.kubeproxy.select import narrow
from analyzer.kubeproxy.view import Frontend, Route, ServicePort, Share, Source
from analyzer.model.addresses import Address
from analyzer.model.lab_pcap import PassedOver
from netns_lab.arriving import seen_from
from netns_lab.asked import routes_to
from netns_lab.decoding import CUT, FRAGMENTS, Fragment, Incomplete, Segment
from netns_lab.destinations import Destinations, Place, is_of_node
from netns_lab.further_addresses import Answer, FurtherAddresses
from netns_lab.pcap import CapturedPacket
from netns_lab.reasons import why_not
from netns_lab.sources import AFFINE_CLIENTS

#: Most flows that are replayed, and thus kept in memory.
MOST_FLOWS: Final = 100_000
#: For one reason: most destinations that are counted separately, and that are named.
_MOST_PLACES: Final = 10_000
_NAMED: Final = 5

LATER: Final = "later packets of flows to Services"
AGAIN: Final = "repeated first packets: sent again, captured twice, or a reused port"
ANSWERS: Final = "replies of Services"
TO_ENDPOINTS: Final = "to an endpoint itself: direct, or captured after DNAT"
OF_ENDPOINTS: Final = "from an endpoint itself"
ELSEWHERE: Final = "to no Service of the dump"
PERHAPS: Final = (
    "possibly to a NodePort: the node's addresses are not known; pass --objects with --node, or "
    "--node-ip"
)
IN_PART: Final = "fragments of IP that may begin flows to Services"
TOO_SHORT: Final = "truncated by the capture, so that they may begin flows to Services"
BEYOND: Final = f"of flows after the first {MOST_FLOWS:,}"
NOT_ASKED: Final = "to Services that --service does not name"
NOT_FROM: Final = "from sources that --from does not name"
FORGOTTEN: Final = (
    f"of more than {AFFINE_CLIENTS} clients with session affinity, of which iptables forgets some"
)
OTHER_FRONTEND: Final = "of a client that session affinity knows from another frontend or network"
LOOPBACK: Final = "from or to a loopback address: the lab replays no such flows"
LINK_LOCAL: Final = "from a link-local address, which does not say where the client is"
OTHERWISE: Final = (
    "to a NodePort at an address of the node at which the rules treat flows otherwise than at the "
    "lab's, or may"
)
LISTENING: Final = "from an endpoint, and from a port on which endpoints listen"


@dataclass(slots=True)
class CapturedFlow:
    """The first packet of a flow.

    Attributes:
        number: of the packet in the capture, from 1.
        at: seconds since 1970.
        to: its destination, as captured.
    """

    number: int
    at: float
    client: Address
    port: int
    to: tuple[Address, int]


@dataclass(slots=True)
class CapturedRoute:
    """Flows that take one route; for hairpin routes, those of one endpoint, the `sender`."""

    service: ServicePort
    route: Route
    sender: Address | None
    flows: list[CapturedFlow] = field(default_factory=list)


@dataclass(slots=True)
class _Reason:
    packets: int = 0
    is_judged: bool = True
    places: Counter[str] = field(default_factory=Counter)


class Capture:
    """Sorts the packets of a capture by the routes of a dump.

    Args:
        forgets: the node forgets some clients with session affinity once there are too many.
    """

    def __init__(self, options: SimpleNamespace, given: Input, *, forgets: bool) -> None:
        self._given = given
        self._forgets = forgets
        self._asked = {id(service) for service in narrow(given.view, options.service)}
        self._sources = set(options.sources or [source.value for source in Source])
        self._destinations = Destinations(given)
        self._further = FurtherAddresses(given)
        self._seen: set[tuple[str, tuple[bytes, int], tuple[bytes, int]]] = set()
        #: Packets of which the first fragment was counted, and not yet the last.
        self._begun: set[tuple[bytes, bytes, int]] = set()
        self._of: dict[Address, Source] = {}
        self._routes: dict[tuple[int, Source], list[tuple[Route, str | None]]] = {}
        self._groups: dict[tuple[object, ...], CapturedRoute] = {}
        self._affine: dict[int, dict[Address, tuple[object, ...]]] = {}
        self._passed: dict[str, _Reason] = {}
        self.packets = 0

    @property
    def routes(self) -> list[CapturedRoute]:
        """The routes that flows take, in the order of the first flow of each."""
        return list(self._groups.values())

    @property
    def passed_over(self) -> tuple[PassedOver, ...]:
        """The packets that are not replayed, by reason; the most frequent reason first."""
        found = sorted(self._passed.items(), key=lambda each: -each[1].packets)
        return tuple(
            PassedOver(
                reason=reason,
                packets=each.packets,
                judged=each.is_judged,
                examples=tuple(name for name, _ in each.places.most_common(_NAMED)),
            )
            for reason, each in found
        )

    def take(self, packets: Iterable[CapturedPacket]) -> None:
        """Sort packets into routes and reasons."""
        for packet in packets:
            self.packets += 1
            match packet.is_:
                case Segment() as found:
                    self._segment(packet, found)
                case Incomplete() as found:
                    self._incomplete(found)
                case reason:
                    self._pass(reason)

    def leave_out(self, flow: CapturedFlow, of: CapturedRoute, reason: str) -> None:
        """Count a flow under a reason after all; the caller removes it from its route."""
        place = f"{_sockaddr(*flow.to)} ({of.service.protocol}, {of.service.name.text})"
        self._pass(reason, place, is_judged=False)

    def _pass(self, reason: str, place: str | None = None, *, is_judged: bool = True) -> None:
        each = self._passed.setdefault(reason, _Reason(is_judged=is_judged))
        each.packets += 1
        if place is not None and (place in each.places or len(each.places) < _MOST_PLACES):
            each.places[place] += 1

    def _segment(self, packet: CapturedPacket, found: Segment) -> None:
        to: Place = (found.protocol, *found.destination)
        of: Place = (found.protocol, *found.source)
        known = self._destinations
        service = known.frontend(to)
        if service is not None and self._is_no_service(found, *service):
            self._pass(ELSEWHERE, _named(to))
        elif service is not None:
            self._to_service(packet, found, *service)
        elif known.frontend(of) is not None:
            self._pass(ANSWERS)
        elif to in known.endpoints:
            self._pass(TO_ENDPOINTS, _named(to))
        elif of in known.endpoints:
            self._pass(OF_ENDPOINTS)
        elif found.opens and known.may_be_node_port(found.protocol, found.destination[1]):
            self._pass(PERHAPS, _named(to), is_judged=False)
        else:
            self._pass(ELSEWHERE, _named(to))

    def _incomplete(self, found: Incomplete) -> None:
        """Count a packet that may begin a flow, as far as the capture shows."""
        fragment = found.fragment
        if fragment is not None and self._is_known(found, fragment):
            self._pass(FRAGMENTS)  # the first one is counted for all of the packet
            return
        if (found.protocol, found.source, found.destination) in self._seen:
            self._pass(LATER)
            return
        port, place = found.destination[1], _named_in_part(found)
        services = self._destinations.services(found)
        if services:
            possible = {source_kind(self._given, ip_address(found.source[0])), Source.HAIRPIN}
            if not any(id(each) in self._asked for each in services):
                self._pass(NOT_ASKED, place)
            elif self._sources.isdisjoint(each.value for each in possible):
                self._pass(NOT_FROM, place)
            else:
                self._pass(TOO_SHORT if fragment is None else IN_PART, place, is_judged=False)
        elif self._destinations.may_be_node_port(found.protocol, port):
            self._pass(PERHAPS, place, is_judged=False)
        else:
            self._pass(CUT if fragment is None else FRAGMENTS)

    def _is_known(self, found: Incomplete, fragment: Fragment) -> bool:
        """Return whether the first fragment of the same packet was counted before."""
        key = found.source[0], found.destination[0], fragment.datagram
        if fragment.is_first:
            if len(self._begun) < MOST_FLOWS:
                self._begun.add(key)
            return False
        is_known = key in self._begun
        if fragment.is_last:
            self._begun.discard(key)
        return is_known

    def _to_service(
        self, packet: CapturedPacket, found: Segment, service: ServicePort, frontend: Frontend
    ) -> None:
        if not found.opens:
            self._pass(LATER)
            return
        ends = found.protocol, found.source, found.destination
        if ends in self._seen:
            self._pass(LATER if found.protocol == "udp" else AGAIN)
            return
        place = _named((found.protocol, *found.destination))
        if len(self._seen) >= MOST_FLOWS:
            self._pass(BEYOND, place, is_judged=False)
            return
        self._seen.add(ends)
        if id(service) not in self._asked:
            self._pass(NOT_ASKED, place)
            return
        client, to = ip_address(found.source[0]), ip_address(found.destination[0])
        source = self._source_of(service, client)
        if source.value not in self._sources:
            self._pass(NOT_FROM, place)
            return
        flow = CapturedFlow(
            packet.number, packet.at, client, found.source[1], (to, found.destination[1])
        )
        reason = self._take(service, frontend, source, flow)
        if reason is not None:
            self._pass(reason, f"{place}, {service.name.text}", is_judged=False)

    def _is_no_service(self, found: Segment, service: ServicePort, frontend: Frontend) -> bool:
        """Return whether the rules leave a packet to a port of a NodePort to the node itself."""
        if not is_of_node(frontend):
            return False
        client, to = ip_address(found.source[0]), ip_address(found.destination[0])
        # What comes to loopback the node itself has sent.
        source = Source.NODE if to.is_loopback else self._source_of(service, client)
        answer = self._further.answer(service, source, client, (to, found.destination[1]))
        return answer is Answer.NO_SERVICE

    def _take(
        self, service: ServicePort, frontend: Frontend, source: Source, flow: CapturedFlow
    ) -> str | None:
        """Add a flow to its route and return None, or return why it is not replayed."""
        if flow.client.is_loopback or flow.to[0].is_loopback:
            return LOOPBACK
        if flow.client.is_link_local and source is not Source.NODE:
            return LINK_LOCAL
        if is_of_node(frontend) and (
            self._further.answer(service, source, flow.client, flow.to) is not Answer.ALIKE
        ):
            return OTHERWISE
        found = self._route(service, frontend, source, flow.client)
        if found is None:
            return "for which the dump has no route from there"
        route, why = found
        if why is not None:
            return why
        key: tuple[object, ...] = id(service), frontend, source, route.network
        sender = None
        if source is Source.HAIRPIN:
            if flow.port in self._destinations.listening:
                return LISTENING
            sender, key = flow.client, (*key, flow.client)
            route = seen_from(service, route, _share_of(route, flow.client))
        if service.affinity is not None:
            known = self._affine.setdefault(id(service), {})
            if known.setdefault(flow.client, key) != key:
                return OTHER_FRONTEND
            if self._forgets and len(known) > AFFINE_CLIENTS:
                del known[flow.client]
                return FORGOTTEN
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = CapturedRoute(service, route, sender)
        group.flows.append(flow)
        return None

    def _route(
        self, service: ServicePort, frontend: Frontend, source: Source, client: Address
    ) -> tuple[Route, str | None] | None:
        """Return the route that a client takes, and why it cannot be replayed, if so."""
        key = id(service), source
        if key not in self._routes:
            self._routes[key] = [
                (route, why_not(service, route))
                for _, route in routes_to(service, source, self._given)
            ]
        found = [
            each
            for each in self._routes[key]
            if each[0].frontend == frontend
            and (each[0].network is None or client in each[0].network)
        ]
        if source is Source.HAIRPIN:
            found = [(r, why) for r, why in found if _has(r, client)]
        return max(
            found,
            key=lambda each: -1 if each[0].network is None else each[0].network.prefixlen,
            default=None,
        )

    def _source_of(self, service: ServicePort, client: Address) -> Source:
        """Return what a client is to the node and the Service; a pod, if nothing says otherwise."""
        if client not in self._of:
            self._of[client] = source_kind(self._given, client)
        found = self._of[client]
        if found is not Source.NODE and client in self._destinations.addresses[id(service)]:
            return Source.HAIRPIN
        return found


def _has(route: Route, client: Address) -> bool:
    return any(share.endpoint.address == client for share in route.shares)


def _share_of(route: Route, client: Address) -> Share:
    return next(share for share in route.shares if share.endpoint.address == client)


def _named(place: Place) -> str:
    protocol, address, port = place
    return f"{_sockaddr(ip_address(address), port)} ({protocol})"


def _named_in_part(found: Incomplete) -> str:
    """Return the name of a destination, as far as it is visible."""
    packed, port = found.destination
    address = ip_address(packed)
    host = str(address) if port is None else _sockaddr(address, port)
    return host if found.protocol is None else f"{host} ({found.protocol})"


def _sockaddr(address: Address, port: int) -> str:
    return f"[{address}]:{port}" if ":" in str(address) else f"{address}:{port}"
