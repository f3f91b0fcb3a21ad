"""Which namespaces a lab needs and what each owns, from the dump and the objects."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address
from typing import Final

from analyzer.failure.models import Dead
from analyzer.kubeproxy.view import Route, ServicePort, View
from analyzer.model.addresses import Address
from analyzer.model.cluster import Cluster
from netns_lab.errors import LabError

#: Where no object says a node's address. RFC 2544: for benchmarks, so no cluster's.
_INVENTED: Final = IPv4Network("198.18.0.0/16")
#: RFC 5737; the client stands there when it is not of the cluster.
_OUTSIDE: Final = IPv4Network("203.0.113.0/24")
#: Stand for the nodes that nobody named.
_ELSEWHERE: Final = "elsewhere"
_ELSEWHERE_DEAD: Final = "elsewhere, dead"

CLIENT_PORTS: Final = range(1024, 65_536)
#: Protocols of which the lab builds packets.
REPLAYED: Final = ("tcp", "udp")


def why_not(service: ServicePort, route: Route) -> str | None:
    """Return why the flows of a route cannot be replayed; None when they can."""
    if service.protocol not in REPLAYED:
        return f"the lab replays {' and '.join(REPLAYED)}, not {service.protocol}"
    if isinstance(route.frontend.address, IPv6Address):
        return "the lab replays flows of IPv4, not to an address of IPv6"
    if service.affinity is not None:
        return (
            "it has session affinity: flows of one client are not independent, and the lab has few "
            "clients; of a failure a pinned client loses everything or nothing"
        )
    if not route.shares:
        return f"{route.frontend} leads to no endpoint at this node"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPlan:
    """A namespace that owns addresses of endpoints.

    Attributes:
        address: of the node itself; None for this node's own pods.
        endpoints: addresses that are endpoints' and not the node's own.
        networks: routes by which the node reaches them: a podCIDR, or single addresses.
        dead: it takes packets and says nothing.
        silent: those of its addresses that are dead by themselves.
    """

    name: str
    address: IPv4Address | None
    endpoints: tuple[IPv4Address, ...]
    networks: tuple[IPv4Network, ...]
    dead: bool = False
    silent: frozenset[Address] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Which namespaces there are and what they own; nothing is made yet.

    Attributes:
        pod_device: the pattern of names that the devices of pods have; a bridge, where it is one.
    """

    node: str
    node_address: IPv4Address
    own_pods: HostPlan
    others: tuple[HostPlan, ...]
    pod_clients: tuple[IPv4Address, ...]
    external_clients: tuple[IPv4Address, ...]
    pod_device: str = "veth+"

    @property
    def bridge(self) -> str | None:
        """The bridge of which the devices of pods are ports; None: there is none."""
        return None if self.pod_device.endswith("+") else self.pod_device

    @property
    def client_device(self) -> str:
        """The node's device towards the clients that are pods."""
        return self._device("client")

    @property
    def pods_device(self) -> str:
        """The node's device towards its own endpoints."""
        return self._device("pods")

    def _device(self, name: str) -> str:
        """Return a name of at most 15 characters that the pattern stands for."""
        return name if self.bridge else f"{self.pod_device[:-1][: 15 - len(name)]}{name}"


def plan(
    view: View, cluster: Cluster, dead: Dead, *, flows: int, pod_device: str = "veth+"
) -> Plan:
    """Return the namespaces that a lab at the node of `view` needs for so many flows.

    Raises:
        LabError: the node is dead itself, or a dump is asked for that is not of IPv4.
    """
    node = view.node or "node"
    if dead.takes(node, cluster):
        raise LabError(
            f"this dump is from {node}, which you declared dead: it has no flows to replay; "
            "take the dump of a node that lives"
        )
    dying = _wholly_dead(view, dead)
    placed = _by_node(view, cluster, dying)
    here = placed.pop(node, [])
    used = _used_addresses(view, cluster)
    own = cluster.nodes.get(node)
    invented = _free(_INVENTED, used)
    node_address = _first_v4(own.addresses if own else ()) or next(invented)
    others = []
    for name, endpoints in sorted(placed.items()):
        known = cluster.nodes.get(name)
        address = _first_v4(known.addresses if known else ()) or next(invented)
        others.append(_host(name, address, endpoints, placed, cluster, dead, dying))
    own_pods = tuple(a for a in here if a != node_address)
    needed = -(-flows // len(CLIENT_PORTS))
    return Plan(
        node=node,
        node_address=node_address,
        own_pods=HostPlan(
            name=f"pods of {node}",
            address=None,
            endpoints=own_pods,
            networks=tuple(IPv4Network(a) for a in own_pods),
            silent=dying & set(own_pods),
        ),
        others=tuple(others),
        pod_clients=tuple(_clients(view, cluster, node, used, needed)),
        external_clients=tuple(itertools.islice(_free(_OUTSIDE, used), needed)),
        pod_device=pod_device,
    )


def _v4(addresses: Iterable[Address]) -> list[IPv4Address]:
    return [a for a in addresses if isinstance(a, IPv4Address)]


def _first_v4(addresses: Iterable[Address]) -> IPv4Address | None:
    return next(iter(_v4(addresses)), None)


def _free(network: IPv4Network, used: set[IPv4Address]) -> Iterator[IPv4Address]:
    """Give the addresses that nothing in the dump or the objects uses."""
    return (a for a in network.hosts() if a not in used)


def _used_addresses(view: View, cluster: Cluster) -> set[IPv4Address]:
    used: set[Address] = set(cluster.placements)
    used.update(e.address for e in view.endpoints)
    used.update(f.address for s in view.services for f in s.frontends if f.address)
    return set(_v4(used))


def _by_node(
    view: View, cluster: Cluster, dying: frozenset[Address]
) -> dict[str, list[IPv4Address]]:
    """Return the endpoints by node; those whose node is not known share one."""
    placed: dict[str, list[IPv4Address]] = {}
    for address in sorted(set(_v4(e.address for e in view.endpoints))):
        name = cluster.placement(address).node
        if name is None:
            name = _ELSEWHERE_DEAD if address in dying else _ELSEWHERE
        placed.setdefault(name, []).append(address)
    return placed


def _wholly_dead(view: View, dead: Dead) -> frozenset[Address]:
    """Return the addresses of which every port that the dump knows is dead.

    Where only some ports are, the pod lives and a process in it is gone: it refuses.
    """
    alive = {e.address for e in view.endpoints if e not in dead.endpoints}
    return frozenset(e.address for e in dead.endpoints) - alive


def _host(
    name: str,
    address: IPv4Address,
    endpoints: list[IPv4Address],
    placed: dict[str, list[IPv4Address]],
    cluster: Cluster,
    dead: Dead,
    dying: frozenset[Address],
) -> HostPlan:
    pods = tuple(a for a in endpoints if a != address)
    is_dead = dead.takes(name, cluster) or name == _ELSEWHERE_DEAD
    return HostPlan(
        name=name,
        address=address,
        endpoints=pods,
        networks=_networks(name, pods, placed, cluster),
        dead=is_dead,
        silent=frozenset() if is_dead else dying & set(endpoints),
    )


def _networks(
    name: str,
    pods: tuple[IPv4Address, ...],
    placed: dict[str, list[IPv4Address]],
    cluster: Cluster,
) -> tuple[IPv4Network, ...]:
    """Return the podCIDRs, or single addresses where another node's pods are in them too."""
    node = cluster.nodes.get(name)
    cidrs = [n for n in node.pod_networks if isinstance(n, IPv4Network)] if node else []
    foreign = [a for other, each in placed.items() if other != name for a in each]
    whole = tuple(n for n in cidrs if not any(a in n for a in foreign))
    alone = tuple(IPv4Network(a) for a in pods if not any(a in n for n in whole))
    return (*whole, *alone) if pods else ()


def _clients(
    view: View, cluster: Cluster, node: str, used: set[IPv4Address], needed: int
) -> list[IPv4Address]:
    """Return addresses of pods on this node that nobody has.

    Raises:
        LabError: the node's pod network has too few.
    """
    known = cluster.nodes.get(node)
    networks = [n for n in known.pod_networks if isinstance(n, IPv4Network)] if known else []
    if not networks and isinstance(view.pod_source, IPv4Address):
        # Neighbours of the address that the analysis took for a pod's.
        networks = [IPv4Network((view.pod_source, 20), strict=False)]
    if not networks:
        networks = [IPv4Network("10.255.240.0/20")]
    # Pods stand at the beginning of a network, and so do gateways.
    found = list(
        itertools.islice(
            (
                a
                for n in networks
                for a in map(n.__getitem__, range(n.num_addresses - 2, 0, -1))
                if a not in used
            ),
            needed,
        )
    )
    if len(found) < needed:
        raise LabError(f"the pod network of {node} has no {needed} free addresses for clients")
    return found
