"""The sources of each kind, the networks that rules distinguish, and an address for each part.

Only what rules match on can make a difference (`explored` finds out what that is), so one address
for each set of sources with the same results of all matches is enough.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from analyzer.kubeproxy.routes.sources import SourceFacts, ends_of, node_address, parts, told_apart
from analyzer.kubeproxy.source_part import ALL_SOURCES, SourcePart
from analyzer.kubeproxy.view import FrontendKind, Source
from analyzer.model.addresses import Address, Network

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

    from analyzer.model.intervals import Interval, Intervals
    from analyzer.model.region import Region

    #: A network, and an address that represents it.
    NetworkAndAddress: TypeAlias = tuple[Network | None, Address | None]


#: Addresses of the widest network that kube-apiserver takes for ClusterIPs. Source: Kubernetes,
#: --service-cluster-ip-range, "Max of 20 bits".
_WIDEST_OF_SERVICES: Final = 1 << 20
#: The networks from which no packet comes in: the kernel drops those from this network, loopback,
#: multicast and broadcast. Source: Linux, net/ipv4/route.c, ``ip_route_input_slow``;
#: net/ipv6/ip6_input.c, ``ip6_rcv_core``; net/ipv6/ip6_output.c, ``ip6_forward``.
NO_SOURCES: Final[Mapping[int, tuple[Network, ...]]] = {
    4: tuple(map(ip_network, ("0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/4", "255.255.255.255"))),
    6: tuple(map(ip_network, ("::/127", "ff00::/8"))),
}


class SourceParts:
    """Splits each kind of source by the networks that rules match on."""

    def __init__(self, known: SourceFacts) -> None:
        self._known = known
        pods = (*known.pods.here, *known.pods.elsewhere, known.written)
        self._pods = [network for network in pods if network is not None]
        self._regions: dict[Source, Region | None] = {}
        self._alike: dict[tuple[Source, frozenset[Intervals]], tuple[SourcePart, ...]] = {}

    @cached_property
    def _frontend_addresses(self) -> frozenset[Address | None]:
        return frozenset([each.address for each in self._known.frontends()])

    @property
    def version(self) -> int:
        """The IP version of all sources."""
        outside = self._known.addresses[Source.EXTERNAL]
        assert outside is not None  # always known
        return outside.version

    @cached_property
    def bridges(self) -> Intervals | None:
        """Addresses in the networks of this node's pods that no known pod has.

        The node's bridges and tunnels may have some. None: no such network is known.
        """
        from analyzer.model.intervals import joined, span, without

        within = joined(span(n) for n in self._known.pods.here if n.version == self.version)
        return without(within, joined(self._numbers(self.version, self._known.cluster.placements)))

    def region(self, source: Source) -> Region | None:
        """Return all addresses of one kind of source; None: not known."""
        if source not in self._regions:
            self._regions[source] = self._region(source)
        return self._regions[source]

    def _region(self, source: Source) -> Region | None:
        # Only loaded for dumps that need it.
        from analyzer.model.intervals import everything, joined, span
        from analyzer.model.region import Region

        usual = self._known.addresses[source]
        if usual is None:
            return None
        version = usual.version
        own = self._numbers(version, self._known.own)
        if source is Source.NODE:
            return Region.of(version, own)
        others = [*own, *self._frontends]
        if source is not Source.EXTERNAL:
            within = self._pods_of(source)
            held = Region.of(version, [span(n) for n in within if n.version == version])
        else:
            held = Region.of(version, [everything(version)])
            others += [span(n) for n in self._pods if n.version == version]
            others += map(span, NO_SOURCES[version])
        return None if held is None else Region.of(version, held.without(joined(others)))

    @cached_property
    def _frontends(self) -> Intervals:
        from analyzer.model.intervals import joined

        return joined(self._numbers(self.version, (f.address for f in self._known.frontends())))

    def _numbers(self, version: int, addresses: Iterable[Address | None]) -> list[Interval]:
        return [(int(a), int(a)) for a in addresses if a is not None and a.version == version]

    def of(self, source: Source, asked: Iterable[Network]) -> Sequence[NetworkAndAddress]:
        """Return the network and an address of each part; None: the addresses are not known.

        If rules distinguish the node's own addresses, it is not known which one is the source.
        """
        usual = self._known.addresses[source]
        if source is Source.NODE:
            return [(None, node_address(self._known.own, asked))]
        if usual is None:
            return [(None, None)]
        return self._parts(source, usual, frozenset(asked))

    def each(self, source: Source, networks: Iterable[Network]) -> Sequence[SourcePart]:
        """Return a part for each network of sources; parts around others come first."""
        return tuple(self._parted(source, networks, lambda network, _: network or ""))

    def alike(self, source: Source, asked: Iterable[Intervals]) -> Sequence[SourcePart]:
        """Return the parts of sources by how rules match on them; outer parts come first.

        The networks of one match are one part where no other match distinguishes them. An
        endpoint's address is a part of its own, since its flows to itself have other results.
        """
        asked = frozenset(asked)
        if (source, asked) not in self._alike:
            self._alike[source, asked] = tuple(self._by_questions(source, asked))
        return self._alike[source, asked]

    def _by_questions(self, source: Source, asked: frozenset[Intervals]) -> Iterator[SourcePart]:
        from analyzer.model.intervals import Membership, networks_of

        membership, is_taken = Membership(asked), self._known.is_taken

        def key(network: Network | None, address: Address) -> Hashable:
            itself = address if is_taken(address) else None
            return network is None, membership.of(int(address)), itself

        networks = {n for each in asked for n in networks_of(self.version, each)}
        yield from self._parted(source, networks, key)

    def _parted(
        self,
        source: Source,
        networks: Iterable[Network],
        key_of: Callable[[Network | None, Address], Hashable],
    ) -> Iterator[SourcePart]:
        nested = _Nested()
        found: dict[tuple[Hashable, Hashable | None], tuple[list[Network | None], Address]] = {}
        for network, address in self.of(source, networks):
            if address is None:
                yield ALL_SOURCES
                continue
            key, around = key_of(network, address), nested.around(address)
            nested.add(network, key)
            of, _ = found.setdefault((key, around), ([], address))
            of.append(network)
        for (key, around), (of, address) in found.items():
            also = tuple([each for each in of[1:] if each is not None])
            yield SourcePart(of[0], also, address, key, around)

    def _parts(
        self, source: Source, usual: Address, networks: Iterable[Network]
    ) -> list[tuple[Network | None, Address]]:
        if source is Source.EXTERNAL:
            return self._external(usual, networks)
        theirs = self._pods_of(source)
        usuals = [usual, *ends_of(theirs)]

        def is_pod(address: Address) -> bool:
            return not self._is_nodes(address) and any(address in each for each in theirs)

        def is_free(address: Address) -> bool:
            return is_pod(address) and not self._known.is_taken(address)

        # If a network has no addresses but endpoints', these are its pods.
        asked = parts(networks, theirs)
        return _each_first(asked, usuals, (is_free, is_pod), self._excluded())

    def covers(self, source: Source, address: Address) -> bool:
        """Return whether `address` is one of a kind of source, as far as these are known."""
        region = self.region(source)
        return region is None or address in region

    def is_outside(self, address: Address) -> bool:
        """Return whether an address is certainly that of a client outside, or of another node.

        If it is not known which networks are pods', any address may be a pod's.
        """
        known = self._known
        nodes = {each for node in known.cluster.nodes.values() for each in node.addresses}
        if address.is_loopback or address.is_link_local or not self._has_all_pods(address, nodes):
            return False
        # Without `own`, any of the nodes may be the one that the dump is from.
        free = bool(known.own) if address in nodes else not known.is_taken(address)
        return free and self._is_client(address)

    def _has_all_pods(self, address: Address, nodes: Collection[Address]) -> bool:
        """Return whether all networks of pods with addresses of that version are known."""
        version, cluster = address.version, self._known.cluster
        said = (*cluster.pod_networks.by_length, *cluster.networks.by_length)
        if self._known.written is None and all(each != version for each, _ in said):
            return False  # podCIDRs say nothing if the CNI plugin does not use them
        pods = [
            each
            for each, placement in cluster.placements.items()
            if each.version == version and placement.node is not None and each not in nodes
        ]
        return bool(self._pods) and all(any(pod in net for net in self._pods) for pod in pods)

    def _pods_of(self, source: Source) -> tuple[Network, ...]:
        pods = self._known.pods
        return pods.here if source is Source.POD else pods.elsewhere

    def _external(
        self, usual: Address, asked: Iterable[Network]
    ) -> list[tuple[Network | None, Address]]:
        # No client outside has an address of these, nor one of the Services' network.
        asked = [
            n
            for n in asked
            if not _is_no_source(n)
            and not self._is_of_pods(n)
            and (usual in n or not self._is_of_services(n))
        ]
        # Other nodes are clients too, if a network has no other clients.
        excluded = self._excluded(*NO_SOURCES[usual.version], *self._pods)
        return _each_first(asked, [usual], (self._is_free_client, self._is_client), excluded)

    def _excluded(self, *networks: Network) -> _Excluded:
        """Return networks, and the addresses that `_is_nodes` accepts, except for loopback."""
        return _Excluded(networks, (self._known.own, self._frontend_addresses))

    def _is_of_pods(self, network: Network) -> bool:
        """Return whether a network has only pods."""
        return any(
            n.version == network.version and network[0] in n and network[-1] in n
            for n in self._pods
        )

    def _is_of_services(self, network: Network) -> bool:
        """Return whether a network has ClusterIPs, and neither pods nor nodes as far as known."""
        if not 1 < network.num_addresses <= _WIDEST_OF_SERVICES:
            return False
        if not _has_one(self._cluster_ips, network):
            return False
        return not _has_one(self._hosts, network) and not any(
            n.version == network.version and network.overlaps(n) for n in self._pods
        )

    @cached_property
    def _cluster_ips(self) -> Sequence[int]:
        frontends = self._known.frontends()
        found = {each.address for each in frontends if each.kind is FrontendKind.CLUSTER_IP}
        return sorted(first for first, _ in self._numbers(self.version, found))

    @cached_property
    def _hosts(self) -> Sequence[int]:
        """The addresses of nodes and pods."""
        known = self._known
        nodes = (each for node in known.cluster.nodes.values() for each in node.addresses)
        held = (*known.own, *nodes, *known.cluster.placements)
        return sorted(first for first, _ in self._numbers(self.version, held))

    def _is_free_client(self, address: Address) -> bool:
        return self._is_client(address) and not self._known.is_taken(address)

    def _is_client(self, address: Address) -> bool:
        """Return whether an address can be that of a client outside, or of another node."""
        return not self._is_nodes(address) and not any(address in n for n in self._pods)

    def _is_nodes(self, address: Address) -> bool:
        """Return whether packets from an address are the node's own, or cannot occur."""
        from analyzer.model.intervals import holds

        # A load balancer's address is the node's own, if it is assigned to the node.
        own = address in self._known.own or _is_no_source(address)
        is_ours = address.version == self.version
        return own or (is_ours and holds(self._frontends, int(address)))


def _is_no_source(of: Address | Network) -> bool:
    """Return whether no packet comes in from an address, or from any of a network."""
    if isinstance(of, IPv4Address | IPv6Address):
        return any(of in each for each in NO_SOURCES[of.version])
    return any(of[0] in each and of[-1] in each for each in NO_SOURCES[of.version])


def _host_network(address: Address) -> Network:
    """Return the network of an address alone; of numbers, since a text would be parsed again."""
    kind = IPv4Network if isinstance(address, IPv4Address) else IPv6Network
    return kind((int(address), address.max_prefixlen))


def _has_one(addresses: Sequence[int], network: Network) -> bool:
    """Return whether a network has one of some sorted addresses."""
    at = bisect_left(addresses, int(network[0]))
    return at < len(addresses) and addresses[at] <= int(network[-1])


class _Excluded(Iterable[Network]):
    """Networks, and addresses as networks, which are made only where they are looked at."""

    def __init__(
        self, networks: Sequence[Network], addresses: Sequence[Collection[Address | None]]
    ) -> None:
        self._networks = networks
        self._addresses = addresses

    def __iter__(self) -> Iterator[Network]:
        yield from self._networks
        yield from (_host_network(a) for each in self._addresses for a in each if a is not None)


class _Nested:
    """Keys of networks, of which those that hold others come first."""

    def __init__(self) -> None:
        self._others: Hashable | None = None
        self._by_length: dict[int, dict[int, Hashable]] = {}

    def add(self, network: Network | None, key: Hashable) -> None:
        """Take the key of a network; None: of what is in none."""
        if network is None:
            self._others = key
        else:
            of = self._by_length.setdefault(network.prefixlen, {})
            of[int(network.network_address)] = key

    def around(self, address: Address) -> Hashable | None:
        """Return the key of the smallest network so far that holds an address."""
        number, width = int(address), address.max_prefixlen
        for length in sorted(self._by_length, reverse=True):
            first = number >> (width - length) << (width - length)
            found = self._by_length[length].get(first)
            if found is not None:
                return found
        return self._others


def _each_first(
    asked: Iterable[Network],
    usual: Sequence[Address],
    tests: Sequence[Callable[[Address], bool]],
    excluded: Iterable[Network],
) -> list[tuple[Network | None, Address]]:
    """Return an address for each set of sources, one that the first of `tests` accepts.

    Networks come after those that contain them.
    """
    asked = set(asked)
    found: dict[Network | None, Address] = {}
    for test in tests:
        if len(found) <= len(asked):
            for network, address in told_apart(asked, usual, test, excluded):
                found.setdefault(network, address)
    return sorted(found.items(), key=lambda part: -1 if part[0] is None else part[0].prefixlen)
