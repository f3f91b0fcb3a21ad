"""The namespaces that a lab needs and their addresses, from the dump and the objects."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network, IPv6Network, ip_network
from types import MappingProxyType
from typing import Final

from analyzer.failure.models import Dead
from analyzer.kubeproxy.view import Route, ServicePort, Source, View
from analyzer.model.addresses import Address, Network
from analyzer.model.cluster import Cluster
from netns_lab.errors import LabError
from netns_lab.sources import (
    AFFINE_CLIENTS,
    EPHEMERAL_PORTS,
    ClientAddresses,
    Sending,
    sending_of,
    version_of,
)

#: For nodes without a known address. RFC 2544: for benchmarks, so no cluster uses them.
_INVENTED: Final[Mapping[int, Network]] = {
    4: IPv4Network("198.18.0.0/16"),
    6: IPv6Network("fd6b:6f00::/112"),
}
#: Where the node sends packets for no one here.
WORLD: Final[Mapping[int, Address]] = {
    4: IPv4Network("198.19.0.1").network_address,
    6: IPv6Network("fd6b:6f01::1").network_address,
}
#: Names for the unknown nodes of endpoints.
_ELSEWHERE: Final = "elsewhere"
_ELSEWHERE_DEAD: Final = "elsewhere, dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPlan:
    """A namespace that owns addresses of endpoints.

    Attributes:
        addresses: of the node itself, one of each version; none for this node's own pods.
        endpoints: addresses of endpoints other than the node's own.
        networks: by which the node routes to them: podCIDRs, or single addresses.
        dead: it receives packets and sends nothing.
        silent: those of its addresses that are dead by themselves.
        pod_device: if the node has rules of its own, the pattern of its pods' devices; else None.
    """

    name: str
    addresses: tuple[Address, ...]
    endpoints: tuple[Address, ...]
    networks: tuple[Network, ...]
    dead: bool = False
    silent: frozenset[Address] = frozenset()
    pod_device: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabPlan:
    """All namespaces of a lab and their addresses; nothing is created yet.

    Attributes:
        node_addresses: one of each version.
        clients: addresses for each kind of source; empty if there is no room for any.
        endpoints_send: endpoints are clients too, on hairpin routes.
        own_clients: more addresses of the node, for its own flows under session affinity.
        pod_device: the pattern of the names of pods' devices, or the name of a bridge.
    """

    node: str
    node_addresses: tuple[Address, ...]
    own_pods: HostPlan
    others: tuple[HostPlan, ...]
    clients: Mapping[Sending, tuple[Address, ...]] = field(default_factory=dict)
    endpoints_send: bool = False
    own_clients: tuple[Address, ...] = ()
    pod_device: str = "veth+"

    @property
    def versions(self) -> tuple[int, ...]:
        """The IP versions that the lab carries."""
        return tuple(address.version for address in self.node_addresses)

    def node_address(self, version: int) -> Address:
        """Return the node's address of one version."""
        return next(each for each in self.node_addresses if each.version == version)

    def clients_from(self, *sources: Source) -> Iterator[Address]:
        """Yield all client addresses of some kinds of source."""
        for sending, addresses in self.clients.items():
            if sending.source in sources:
                yield from addresses

    @property
    def bridge(self) -> str | None:
        """The bridge that pods' devices are ports of; None if there is none."""
        return bridge_of(self.pod_device)

    @property
    def client_device(self) -> str:
        """The node's device towards the clients that are pods."""
        return device_name(self.pod_device, "client")

    @property
    def pods_device(self) -> str:
        """The node's device towards its own endpoints."""
        return device_name(self.pod_device, "pods")


def bridge_of(pattern: str) -> str | None:
    """Return the bridge that a pattern of devices names; None if it names no bridge."""
    return None if pattern.endswith("+") else pattern


def device_name(pattern: str, name: str) -> str:
    """Return a name of at most 15 characters that matches the pattern."""
    return name if bridge_of(pattern) else f"{pattern[:-1][: 15 - len(name)]}{name}"


def plan(
    view: View,
    cluster: Cluster,
    dead: Dead,
    *,
    flows: int,
    clients: int = 0,
    routes: Sequence[tuple[ServicePort, Route]] = (),
    pod_device: str = "veth+",
    visitors: Sequence[Source] = (),
    pod_devices: Mapping[str, str] = MappingProxyType({}),
    own: Iterable[Address] = (),
    node_ports: Iterable[Address] = (),
) -> LabPlan:
    """Return the namespaces that a lab at the node of `view` needs for `flows` flows.

    There are `clients` addresses of each kind of source, as far as there is room. With `routes`,
    only what these need is planned, and one client for each of `visitors`. `pod_devices` has the
    nodes with rules of their own, and the pattern of their pods' devices. The node has an address
    of `own`, if any is given; if no object knows one of an IP version either, one of `node_ports`,
    where the rules accept NodePorts.

    Raises:
        LabError: the node itself is dead.
    """
    node = view.node or "node"
    if dead.takes(node, cluster):
        raise LabError(dead_itself(node))
    services = list({id(s): s for s, _ in routes}.values()) or list(view.services)
    versions = sorted({s.version for s in services if s.version is not None}) or [4]
    dying = _wholly_dead(view, dead)
    placed = _by_node(services, cluster, dying)
    here = placed.get(node, [])
    used = used_addresses(view, cluster)
    invented = {version: _free(_INVENTED[version], used) for version in versions}
    node_addresses = _node_addresses(cluster, node, versions, invented, own, node_ports)
    others = []
    for name, endpoints in sorted(placed.items()):
        if name == node:
            continue
        addresses = _node_addresses(cluster, name, versions, invented)
        host = _host(name, addresses, endpoints, placed, cluster, dead, dying)
        device = None if host.dead else pod_devices.get(name)
        others.append(replace(host, pod_device=device))
    own_pods = tuple(a for a in here if a not in node_addresses)
    taken = {
        *used,
        *node_addresses,
        *(a for each in others for a in each.addresses),
        *WORLD.values(),
    }
    choosing = ClientAddresses(view, cluster, taken, -(-flows // len(EPHEMERAL_PORTS)))
    return LabPlan(
        node=node,
        node_addresses=node_addresses,
        own_pods=HostPlan(
            name=f"pods of {node}",
            addresses=(),
            endpoints=own_pods,
            networks=tuple(ip_network(a) for a in own_pods),
            silent=dying & set(own_pods),
        ),
        others=tuple(others),
        clients={
            each: choosing.of(each, max(welcome, clients))
            for each, welcome in _sendings(routes, versions, visitors).items()
        },
        endpoints_send=Source.HAIRPIN in {*visitors, *(route.source for _, route in routes)},
        pod_device=pod_device,
    )


def dead_itself(node: str) -> str:
    """Return the error message if the dump's own node is dead."""
    return (
        f"this dump is from {node}, which you declared dead: it has no flows to replay; use the "
        "dump of a living node"
    )


def _sendings(
    routes: Iterable[tuple[ServicePort, Route]],
    versions: Collection[int],
    visitors: Iterable[Source],
) -> dict[Sending, int]:
    """Return the kinds of source that routes need, and how many clients of each are useful.

    Pods of this node come first, and are always included.
    """
    sources = [Source.POD, *(each for each in visitors if each is not Source.HAIRPIN)]
    found = {Sending(source, version): 0 for source in sources for version in versions}
    for service, route in routes:
        if route.source not in (Source.NODE, Source.HAIRPIN):
            sending = sending_of(service, route, version_of(service, route))
            welcome = AFFINE_CLIENTS if service.affinity is not None else 0
            found[sending] = max(found.get(sending, 0), welcome)
    return found


def _node_addresses(
    cluster: Cluster,
    name: str,
    versions: Iterable[int],
    invented: Mapping[int, Iterator[Address]],
    given: Iterable[Address] = (),
    by_rules: Iterable[Address] = (),
) -> tuple[Address, ...]:
    """Return a node's address of each version: one that is `given` or of the objects, or unused.

    If neither has any of that version, one of `by_rules` that is no other node's.
    """
    known = cluster.nodes.get(name)
    told = *given, *(known.addresses if known else ())
    told += tuple(_unassigned(by_rules, cluster))
    return tuple(
        next((a for a in told if a.version == version), None) or next(invented[version])
        for version in versions
    )


def _unassigned(addresses: Iterable[Address], cluster: Cluster) -> Iterator[Address]:
    for address in addresses:
        if not any(address in each.addresses for each in cluster.nodes.values()):
            yield address


def _free(network: Network, used: set[Address]) -> Iterator[Address]:
    """Yield the addresses that nothing in the dump or the objects uses."""
    return (a for a in network.hosts() if a not in used)


def used_addresses(view: View, cluster: Cluster) -> set[Address]:
    """Return the addresses in the dump or the objects, which no client may have."""
    used: set[Address] = set(cluster.placements)
    used.update(e.address for e in view.endpoints)
    used.update(f.address for s in view.services for f in s.frontends if f.address)
    used.update(a for n in cluster.nodes.values() for a in n.addresses)
    return used


def _by_node(
    services: Iterable[ServicePort], cluster: Cluster, dying: frozenset[Address]
) -> dict[str, list[Address]]:
    """Return the endpoints by node; those whose node is not known share one."""
    placed: dict[str, list[Address]] = {}
    found = {e.address for s in services for e in s.endpoints}
    for address in sorted(found, key=lambda a: (a.version, int(a))):
        name = cluster.placement(address).node
        if name is None:
            name = _ELSEWHERE_DEAD if address in dying else _ELSEWHERE
        placed.setdefault(name, []).append(address)
    return placed


def _wholly_dead(view: View, dead: Dead) -> frozenset[Address]:
    """Return the addresses of which every port in the dump is dead.

    If only some ports are, the pod is alive without a process, so it refuses.
    """
    if not dead.endpoints:
        return frozenset()
    alive = {e.address for e in view.endpoints if e not in dead.endpoints}
    return frozenset(e.address for e in dead.endpoints) - alive


def _host(
    name: str,
    addresses: tuple[Address, ...],
    endpoints: list[Address],
    placed: dict[str, list[Address]],
    cluster: Cluster,
    dead: Dead,
    dying: frozenset[Address],
) -> HostPlan:
    pods = tuple(a for a in endpoints if a not in addresses)
    is_dead = dead.takes(name, cluster) or name == _ELSEWHERE_DEAD
    return HostPlan(
        name=name,
        addresses=addresses,
        endpoints=pods,
        networks=_networks(name, pods, placed, cluster),
        dead=is_dead,
        silent=frozenset() if is_dead else dying & set(endpoints),
    )


def _networks(
    name: str,
    pods: tuple[Address, ...],
    placed: dict[str, list[Address]],
    cluster: Cluster,
) -> tuple[Network, ...]:
    """Return the podCIDRs, or single addresses if other nodes' pods are or may be in them too."""
    node = cluster.nodes.get(name)
    versions = {a.version for a in pods}
    cidrs = [n for n in node.pod_networks if n.version in versions] if node else []
    foreign = [a for other, each in placed.items() if other != name for a in each]
    theirs = [
        n for other, each in cluster.nodes.items() if other != name for n in each.pod_networks
    ]
    whole = tuple(
        n
        for n in cidrs
        if not any(a in n for a in foreign)
        and not any(each.version == n.version and n.overlaps(each) for each in theirs)
    )
    alone = tuple(ip_network(a) for a in pods if not any(a in n for n in whole))
    return (*whole, *alone) if pods else ()
