"""Flows to no Service, and what happens to them in two dumps.

nftables mode differs here by design: it rejects flows to a ClusterIP at a port that it does not
have, drops those to unallocated ClusterIPs, and accepts NodePorts only at some of the node's
addresses. None of that is hard-coded here: the same packets are evaluated in both dumps, and the
rules that they hit are the evidence. A few ClusterIPs and NodePorts represent all.

Source: kubernetes, pkg/proxy/nftables/README.md, "General theory of operation".
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Final, TypeVar

from analyzer.kubeproxy.diff.changes import UNRESOLVED, Otherwise
from analyzer.kubeproxy.diff.pairs import version_of
from analyzer.kubeproxy.diff.shares import certainly_agree, certainly_differ
from analyzer.kubeproxy.diff.side import DumpSide, PacketEnds
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.routes.packets import SIDES
from analyzer.kubeproxy.view import Endpoint, FrontendKind, Source, View
from analyzer.model.addresses import Address
from analyzer.model.packet import NO_DEVICE, Packet
from analyzer.model.probability import NEVER, Bounds
from analyzer.model.ternary import Ternary
from analyzer.model.value import replace, value
from analyzer.semantics.tree import AnyRule

T = TypeVar("T")

#: Most ClusterIPs, and most NodePorts, that are evaluated.
_MOST_ASKED: Final = 4
_HIGHEST_PORT: Final = 0xFFFF
_BITS: Final = {4: 32, 6: 128}
_ECHO_REQUEST: Final = {4: ("icmp", (8, 0)), 6: ("ipv6-icmp", (128, 0))}
_NONE: Final = Bounds(NEVER, NEVER)
#: Represents an address of the node other than the known ones; of TEST-NET-1 and of IPv6
#: documentation (RFC 5737, RFC 3849).
_ANOTHER: Final[dict[int, Address]] = {
    4: IPv4Address("192.0.2.254"),
    6: IPv6Address("2001:db8:fffe::254"),
}
_LOOPBACK: Final[dict[int, Address]] = {4: IPv4Address("127.0.0.1"), 6: IPv6Address("::1")}
_OUTSIDE: Final[dict[int, Address]] = {
    4: IPv4Address("203.0.113.1"),
    6: IPv6Address("2001:db8:ffff::1"),
}


@enum.unique
class Topic(enum.Enum):
    """A kind of flows to no Service, or that nftables mode treats differently by design."""

    CLUSTER_IP_PORT = "cluster-ip-port"
    CLUSTER_IP_PING = "cluster-ip-ping"
    UNALLOCATED = "unallocated-cluster-ip"
    NODE_PORT_LOOPBACK = "node-port-loopback"
    NODE_PORT_ADDRESS = "node-port-address"
    REFUSED_FROM_NODE = "refused-from-node"
    HAIRPIN_ELSEWHERE = "hairpin-elsewhere"
    HAIRPIN_THROUGH_NODE = "hairpin-through-node"


@value(kw_only=True)
class NonServiceFlows:
    """A result that differs, or may differ.

    Attributes:
        version: of the IP, 4 or 6.
        sources: the sources of such flows.
        a: how such flows end in the first dump: endpoint, drop, reject or no-service, and the share
            of them.
        places: the destinations of such flows, as far as evaluated; or the endpoints that send
            them.
        rules_a: those on the likeliest way; empty if no single flow was evaluated.
        is_certain: whether the results certainly differ.
        is_intended: whether nftables mode differs in this by design.
    """

    topic: Topic
    version: int
    sources: tuple[Source, ...]
    a: Otherwise
    b: Otherwise
    places: tuple[Endpoint, ...]
    rules_a: tuple[AnyRule, ...]
    rules_b: tuple[AnyRule, ...]
    is_certain: bool
    is_intended: bool


@value
class _Found:
    topic: Topic
    source: Source
    packet: Packet
    a: PacketEnds
    b: PacketEnds
    is_certain: bool


def beside(a: DumpSide, b: DumpSide, version: int) -> tuple[NonServiceFlows, ...]:
    """Return what differs for flows to no Service, of one IP version."""
    found: dict[object, list[_Found]] = {}
    for topic, source, packet in _questions(a, b, version):
        here, there = a.fate(packet), b.fate(packet)
        certain = _differ(here.ends, there.ends)
        if certain is not Ternary.FALSE:
            one = _Found(topic, source, packet, here, there, certain is Ternary.TRUE)
            found.setdefault((topic, here.ends, there.ends), []).append(one)
    modes = a.view.mode, b.view.mode
    return tuple([_told(each, version, modes) for each in found.values()])


def _told(
    found: Sequence[_Found], version: int, modes: tuple[ProxyMode, ProxyMode]
) -> NonServiceFlows:
    first = found[0]
    places = [(one.packet.destination, one.packet.destination_port) for one in found]
    # Unallocated addresses may also be dropped in one version of nftables mode and not in another.
    intended = ProxyMode.NFTABLES in modes and (
        modes[0] != modes[1] or first.topic is Topic.UNALLOCATED
    )
    return NonServiceFlows(
        topic=first.topic,
        version=version,
        sources=tuple(dict.fromkeys(one.source for one in found)),
        a=first.a.ends,
        b=first.b.ends,
        places=tuple(dict.fromkeys(Endpoint(to, port) for to, port in places if to is not None)),
        rules_a=first.a.rules,
        rules_b=first.b.rules,
        is_certain=first.is_certain,
        is_intended=intended,
    )


def _differ(a: Otherwise, b: Otherwise) -> Ternary:
    in_a, in_b = dict(a), dict(b)
    open_a, open_b = in_a.pop(UNRESOLVED, _NONE), in_b.pop(UNRESOLVED, _NONE)
    answer = Ternary.FALSE
    for kind in {**in_a, **in_b}:
        here = in_a.get(kind, Bounds(NEVER, open_a.upper))
        there = in_b.get(kind, Bounds(NEVER, open_b.upper))
        if certainly_differ(here, there):
            return Ternary.TRUE
        if here != there and not certainly_agree(here, there):
            answer = Ternary.UNKNOWN
    return Ternary.UNKNOWN if open_a != open_b else answer


# --- the packets ---


def _questions(a: DumpSide, b: DumpSide, version: int) -> Iterator[tuple[Topic, Source, Packet]]:
    sources = {
        Source.POD: _pod(a, b, version),
        Source.NODE: next(iter((*a.own, *b.own)), None),
        Source.EXTERNAL: _OUTSIDE[version],
    }
    for topic, packet in [*_to_cluster_ips(a.view, b.view, version)]:
        for source, address in sources.items():
            yield topic, source, _from(source, address, packet)
    for topic, packet in [*_to_node_ports(a, b, version)]:
        loopback = topic is Topic.NODE_PORT_LOOPBACK
        for source, address in sources.items():
            if not loopback:
                yield topic, source, _from(source, address, packet)
            elif source is Source.NODE:  # the kernel drops packets to loopback that come in
                yield topic, source, _from(source, packet.destination, packet)


def _pod(a: DumpSide, b: DumpSide, version: int) -> Address | None:
    known = (pod for each in (a, b) for pod in each.view.pod_sources)
    return next((pod for pod in known if pod.version == version), None)


def _from(source: Source, address: Address | None, packet: Packet) -> Packet:
    made_here = source is Source.NODE
    return replace(
        packet,
        source=address,
        in_interface=NO_DEVICE if made_here else None,
        from_node=made_here,
        comes_from=SIDES.get(source),
    )


def _to_cluster_ips(a: View, b: View, version: int) -> Iterator[tuple[Topic, Packet]]:
    """Yield packets to ports that a ClusterIP does not have, and to unallocated ClusterIPs."""
    of_services = {f for view in (a, b) for s in view.services for f in s.frontends}
    known = {f.address for f in of_services}
    in_both = [
        {
            f.address
            for s in view.services
            for f in s.frontends
            if f.kind is FrontendKind.CLUSTER_IP
            and f.address is not None
            and f.address.version == version
        }
        for view in (a, b)
    ]
    addresses = sorted(in_both[0] & in_both[1], key=int)
    ports = {f.port for f in of_services}
    free = next((port for port in range(_HIGHEST_PORT, 0, -1) if port not in ports), None)
    if free is None:
        return
    for address in _some(addresses):
        to = Packet(protocol="tcp", destination=address, destination_port=free, to_node=False)
        yield Topic.CLUSTER_IP_PORT, to
        protocol, icmp = _ECHO_REQUEST[version]
        ping = Packet(protocol=protocol, icmp=icmp, destination=address, to_node=False)
        yield Topic.CLUSTER_IP_PING, ping
    highest = (1 << _BITS[version]) - 1
    behind = (address + 1 for address in addresses if int(address) < highest)
    unknown = [address for address in behind if address not in known]
    for address in _some(unknown):
        to = Packet(protocol="tcp", destination=address, destination_port=free, to_node=False)
        yield Topic.UNALLOCATED, to


def _to_node_ports(a: DumpSide, b: DumpSide, version: int) -> Iterator[tuple[Topic, Packet]]:
    """Yield packets to NodePorts at the node's addresses other than the first one."""
    in_both = _node_ports(a.view, version) & _node_ports(b.view, version)
    own = dict.fromkeys([*a.own[1:], *b.own[1:], _ANOTHER[version]])
    for protocol, port in _some(sorted(in_both)):
        to = Packet(protocol=protocol, destination_port=port, to_node=True)
        yield Topic.NODE_PORT_LOOPBACK, replace(to, destination=_LOOPBACK[version])
        for address in own:
            yield Topic.NODE_PORT_ADDRESS, replace(to, destination=address)


def _node_ports(view: View, version: int) -> set[tuple[str, int]]:
    """Return protocol and number of the NodePorts with endpoints for all clients."""
    return {
        (service.protocol, route.frontend.port)
        for service in view.services
        if any(f.kind is FrontendKind.NODE_PORT for f in service.frontends)
        and version_of(service) == version
        for route in service.routes_from(Source.EXTERNAL)
        if route.frontend.kind is FrontendKind.NODE_PORT
        and route.frontend.port is not None
        and len(route.shares)
    }


def _some(every: Sequence[T]) -> list[T]:
    """Return a few of many: the first, the last, and some between."""
    if len(every) <= _MOST_ASKED:
        return list(every)
    last = len(every) - 1
    return [every[at * last // (_MOST_ASKED - 1)] for at in range(_MOST_ASKED)]
