"""Where the flows of a route come from: client addresses that rules cannot tell from its sources.

A route that names a network is of the sources in it; rules that match on networks within that one
tell these apart again, so that no client stands in them. Nothing in the dump or in the objects has
a client's address.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Final

from analyzer.kubeproxy.routes.source_parts import NO_SOURCES
from analyzer.kubeproxy.view import Route, ServicePort, Source, View
from analyzer.model.addresses import Address, Network, network_of
from analyzer.model.cluster import Cluster
from analyzer.model.intervals import Intervals, joined, span, without
from netns_lab.errors import LabError

#: RFC 5737 and RFC 3849, documentation: for clients outside the cluster.
#: The later ones where the first are used up, or rules tell them apart; RFC 2544 and RFC 9637 last.
_OUTSIDE: Final[Mapping[int, tuple[Network, ...]]] = {
    4: (
        IPv4Network("203.0.113.0/24"),
        IPv4Network("198.51.100.0/24"),
        IPv4Network("192.0.2.0/24"),
        IPv4Network("198.18.0.0/16"),
    ),
    6: (
        IPv6Network("2001:db8:ffff::/120"),
        IPv6Network("2001:db8:fffe::/120"),
        IPv6Network("3fff:ffff::/120"),
    ),
}
#: Where nothing tells of a pod's address.
_ANY_POD: Final[Mapping[int, Network]] = {
    4: IPv4Network("10.255.240.0/20"),
    6: IPv6Network("fd00:ffff::/116"),
}
#: Bits of the neighbourhood of an address that the analysis took for a pod's.
_NEIGHBOURHOOD: Final = 12
#: Addresses that are looked at, of one network without what is no source or stands apart.
_MOST_TRIES: Final = 4096

#: Predictions may rest on the assumption that new flows come from these (`ephemeral`).
EPHEMERAL_PORTS: Final = range(32_768, 65_536)
#: The others come last: where one client has more flows than that.
CLIENT_PORTS: Final = (*EPHEMERAL_PORTS, *range(1024, EPHEMERAL_PORTS.start))
#: Clients of a Service with session affinity at one time: xt_recent keeps 100 a list.
AFFINE_CLIENTS: Final = 100


@dataclass(frozen=True, slots=True)
class Sending:
    """A kind of sources: of one IP version, in `network` if there is one, and not in `apart`."""

    source: Source
    version: int
    network: Network | None = None
    apart: frozenset[Network] = frozenset()


def sending_of(service: ServicePort, route: Route, version: int) -> Sending:
    """Return where a route's flows come from."""
    alike = [r for r in service.routes_from(route.source) if r.frontend == route.frontend]
    apart = frozenset(
        each
        for other in alike
        for each in other.networks
        if each != route.network and (route.network is None or _holds(route.network, each))
    )
    return Sending(route.source, version, route.network, apart)


def version_of(service: ServicePort, route: Route) -> int:
    """Return the IP version of a route's flows."""
    address = route.frontend.address
    return address.version if address is not None else service.version or 4


class ClientAddresses:
    """The client addresses of a lab at one node.

    Args:
        used: addresses that no client may have.
        needed: how many of one kind.
    """

    def __init__(
        self, view: View, cluster: Cluster, used: Collection[Address], needed: int
    ) -> None:
        self._view = view
        self._cluster = cluster
        self._used = set(used)
        self._needed = needed

    def of(self, sending: Sending, welcome: int = 0) -> tuple[Address, ...]:
        """Return addresses for one kind of sources, which nothing else has from now on.

        More than are needed are `welcome`.

        Raises:
            LabError: the network of this node's pods has too few.
        """
        most = max(self._needed, welcome)
        found = tuple(itertools.islice(self._free(sending), most))
        if sending == Sending(Source.POD, sending.version) and len(found) < self._needed:
            raise LabError(
                f"the pod network of {self._view.node or 'node'} has no {self._needed} free "
                "addresses for clients"
            )
        self._used.update(found)
        return found

    def _free(self, sending: Sending) -> Iterator[Address]:
        for address in self._candidates(sending):
            inside = sending.network is None or address in sending.network
            if inside and address not in self._used:
                yield address

    def _candidates(self, sending: Sending) -> Iterator[Address]:
        networks = self._networks(sending)
        within = sending.network
        # Without a named node, the networks of its pods are a guess: `within` may be elsewhere.
        if within is not None and (
            sending.source is Source.EXTERNAL or not any(_holds(within, each) for each in networks)
        ):
            networks = (within,)
        but = joined(map(span, (*NO_SOURCES[sending.version], *sending.apart)))
        for each in networks:
            yield from _from_the_end(each, but)

    def _networks(self, sending: Sending) -> Sequence[Network]:
        version, nodes = sending.version, self._cluster.nodes
        known = self._view.node in nodes
        match sending.source:
            case Source.EXTERNAL:
                return _OUTSIDE[version]
            case Source.POD_ELSEWHERE:
                others = [name for name in nodes if name != self._view.node]
                found = self._of_version(version, others)
            case _:
                found = self._of_version(version, [self._view.node or ""] if known else [])
        return found or (self._neighbourhood(version),)

    def _of_version(self, version: int, names: Iterable[str]) -> tuple[Network, ...]:
        nodes = self._cluster.nodes
        found = (network for name in names for network in nodes[name].pod_networks)
        return tuple(network for network in found if network.version == version)

    def _neighbourhood(self, version: int) -> Network:
        """Return where the address stands that the analysis took for a pod's."""
        known = (each for each in self._view.pod_sources if each.version == version)
        pod = next(known, None)
        if pod is None:
            return _ANY_POD[version]
        return network_of(version, int(pod), pod.max_prefixlen - _NEIGHBOURHOOD)


def _from_the_end(network: Network, but: Intervals) -> Iterator[Address]:
    """Give addresses of a network that are not in `but`, the last usable one first.

    Pods and gateways begin in front.
    """
    first, last = span(network)
    usable = (first + 1, last - 1) if last - first > 1 else (first, first)
    for low, high in reversed(without((usable,), but)):
        for number in range(high, max(low - 1, high - _MOST_TRIES), -1):
            yield network[number - first]


def _holds(outer: Network, inner: Network) -> bool:
    return (
        outer.version == inner.version
        and inner.prefixlen >= outer.prefixlen
        and inner.network_address in outer
    )
