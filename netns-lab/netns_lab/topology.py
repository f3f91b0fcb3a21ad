"""The small cluster around one node, as far as the node's own rules can tell.

    client --- node (the dump is loaded here) --- fabric --- other node, one each
                 |                                    `----- world (all that is none of these)
               pods (this node's own endpoints)

Neighbours and the bridge's table are static, so that no packet waits for ARP or is flooded, and
so that a dead node is a silent peer behind a link that is up: its namespace has no address, it
takes every packet and says nothing. A node owns its endpoints by AnyIP: local routes, no devices.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from typing import Final

from analyzer.failure.models import Dead
from analyzer.kubeproxy.view import View
from analyzer.model.cluster import Cluster
from analyzer.model.packet import Address
from netns_lab.command import ip_batch, run
from netns_lab.errors import LabError
from netns_lab.namespace import Namespace

#: Where no object says a node's address. RFC 2544: for benchmarks, so no cluster's.
_INVENTED: Final = IPv4Network("198.18.0.0/16")
#: RFC 5737; the client stands there when it is not of the cluster.
_OUTSIDE: Final = IPv4Network("203.0.113.0/24")
#: The next hop of a pod; link-local, never routed. Its MAC is what counts.
_HOP: Final = IPv4Address("169.254.1.1")
#: Where the node sends what is for nobody here.
_WORLD: Final = IPv4Address("198.19.0.1")

#: Stand for the nodes that nobody named.
_ELSEWHERE: Final = "elsewhere"
_ELSEWHERE_DEAD: Final = "elsewhere, dead"

CLIENT_PORTS: Final = range(1024, 65_536)


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
    """Which namespaces there are and what they own; nothing is made yet."""

    node: str
    node_address: IPv4Address
    own_pods: HostPlan
    others: tuple[HostPlan, ...]
    pod_clients: tuple[IPv4Address, ...]
    external_clients: tuple[IPv4Address, ...]


def plan(view: View, cluster: Cluster, dead: Dead, *, flows: int) -> Plan:
    """Return the namespaces that a lab at the node of `view` needs for so many flows.

    Raises:
        LabError: the node is dead itself, or a dump is asked for that is not of IPv4.
    """
    node = view.node or "node"
    if node in dead.nodes:
        raise LabError(
            f"{node} is the node whose rules these are: dead, it has no flows to replay; "
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
    node = cluster.nodes.get(name)
    zone = node.zone if node is not None else None
    is_dead = name in dead.nodes or zone in dead.zones or name == _ELSEWHERE_DEAD
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


@dataclass(slots=True)
class Host:
    """A namespace of the lab and its device towards the node."""

    namespace: Namespace
    mac: str
    plan: HostPlan | None = None
    device: str = "eth0"


@dataclass(slots=True, kw_only=True)
class Topology:
    """The lab, built."""

    plan: Plan
    node: Namespace
    client: Host
    own_pods: Host
    others: list[Host]
    world: Host
    #: MACs of the node's devices: towards the client, its own pods, and the fabric.
    gateway_mac: str
    pods_mac: str
    uplink_mac: str
    fabric: Namespace = field(repr=False)

    @property
    def hosts(self) -> list[Host]:
        """All namespaces that take packets, the world included."""
        return [self.own_pods, *self.others, self.world]


def _mac(kind: int, number: int = 0) -> str:
    """Return a locally administered address."""
    return f"02:6b:6f:{kind:02x}:{number >> 8:02x}:{number & 255:02x}"


def build(wanted: Plan) -> Topology:
    """Make the namespaces, devices and routes.

    Raises:
        LabError: the kernel or ip(8) refuses.
    """
    node, fabric = Namespace(wanted.node), Namespace("fabric")
    client = Host(Namespace("client"), _mac(1))
    own_pods = Host(Namespace(wanted.own_pods.name), _mac(2), wanted.own_pods)
    world = Host(Namespace("world"), _mac(3))
    others = [
        Host(Namespace(each.name), _mac(4, at), each) for at, each in enumerate(wanted.others)
    ]
    built = Topology(
        plan=wanted,
        node=node,
        client=client,
        own_pods=own_pods,
        others=others,
        world=world,
        gateway_mac=_mac(5, 1),
        pods_mac=_mac(5, 2),
        uplink_mac=_mac(5, 3),
        fabric=fabric,
    )
    for namespace in (node, fabric, *(h.namespace for h in (client, *built.hosts))):
        _quiet(namespace)
    _wire(built)
    _set_up_node(built)
    _set_up_client(built)
    for host in (own_pods, *others):
        _set_up_host(host, wanted)
    ip_batch(world.namespace, ["link set lo up", "link set eth0 up"])
    return built


def _quiet(namespace: Namespace) -> None:
    """Switch off what would send packets by itself, or drop ours, before devices exist."""
    for scope in ("all", "default"):
        namespace.set(f"net/ipv4/conf/{scope}/rp_filter", 0)
        namespace.set(f"net/ipv4/conf/{scope}/accept_local", 1)
        namespace.set(f"net/ipv6/conf/{scope}/disable_ipv6", 1)


def _wire(lab: Topology) -> None:
    node = lab.node.path
    ip_batch(
        lab.node,
        [
            "link set lo up",
            _veth("client", _mac(5, 1), lab.client),
            _veth("pods", _mac(5, 2), lab.own_pods),
        ],
    )
    ports = [("world", lab.world), *((f"n{at}", h) for at, h in enumerate(lab.others))]
    uplink = f"link add uplink type veth peer name eth0 address {_mac(5, 3)} netns {node}"
    ip_batch(
        lab.fabric,
        [
            # Its table is written below; learning would only forget it.
            "link add fabric type bridge",
            "link set fabric up",
            uplink,
            *(
                f"link add {port} type veth peer name eth0 address {host.mac} "
                f"netns {host.namespace.path}"
                for port, host in ports
            ),
            *(f"link set {port} master fabric up" for port in ("uplink", *dict(ports))),
        ],
    )
    entries = [("uplink", _mac(5, 3)), *((port, host.mac) for port, host in ports)]
    lines = [f"fdb replace {mac} dev {port} master static" for port, mac in entries]
    run(lab.fabric, ["bridge", "-batch", "-"], "\n".join(lines) + "\n")


def _veth(device: str, mac: str, host: Host) -> str:
    return (
        f"link add {device} address {mac} type veth peer name eth0 address {host.mac} "
        f"netns {host.namespace.path}"
    )


def _set_up_node(lab: Topology) -> None:
    wanted = lab.plan
    lines = [f"link set {device} up" for device in ("client", "pods", "eth0")]
    lines.append(f"addr add {wanted.node_address}/32 dev eth0")
    for clients in (wanted.pod_clients, wanted.external_clients):
        for address in clients:
            lines += _neighbour(address, "client", lab.client.mac)
    for address in wanted.own_pods.endpoints:
        lines += _neighbour(address, "pods", lab.own_pods.mac)
    for host in lab.others:
        assert host.plan is not None
        assert host.plan.address is not None
        lines += _neighbour(host.plan.address, "eth0", host.mac)
        lines += [
            f"route replace {n} via {host.plan.address} dev eth0 onlink" for n in host.plan.networks
        ]
    lines += _neighbour(_WORLD, "eth0", lab.world.mac)
    lines.append(f"route add default via {_WORLD} dev eth0 onlink")
    ip_batch(lab.node, lines)
    lab.node.set("net/ipv4/ip_forward", 1)


def _neighbour(address: IPv4Address, device: str, mac: str) -> list[str]:
    return [
        f"route replace {address}/32 dev {device}",
        f"neigh replace {address} lladdr {mac} dev {device} nud permanent",
    ]


def _set_up_client(lab: Topology) -> None:
    clients = (*lab.plan.pod_clients, *lab.plan.external_clients)
    ip_batch(
        lab.client.namespace,
        [
            "link set lo up",
            "link set eth0 up",
            *(f"addr add {address}/32 dev eth0" for address in clients),
            *_default_route(_HOP, lab.gateway_mac),
        ],
    )


def _default_route(hop: IPv4Address, mac: str) -> list[str]:
    return [
        f"neigh replace {hop} lladdr {mac} dev eth0 nud permanent",
        f"route add default via {hop} dev eth0 onlink",
    ]


def _set_up_host(host: Host, wanted: Plan) -> None:
    assert host.plan is not None
    lines = ["link set lo up", "link set eth0 up"]
    if host.plan.dead:
        ip_batch(host.namespace, lines)
        return
    if host.plan.address is not None and host.plan.address not in host.plan.silent:
        lines.append(f"addr add {host.plan.address}/32 dev eth0")
    lines += [f"route add local {n} dev lo" for n in host.plan.networks]
    # More specific than the network it is in: taken in, and no word said.
    lines += [
        f"route replace blackhole {a}/32 table local" for a in sorted(map(str, host.plan.silent))
    ]
    own = host.plan.address is None
    hop, mac = (_HOP, _mac(5, 2)) if own else (wanted.node_address, _mac(5, 3))
    ip_batch(host.namespace, [*lines, *_default_route(hop, mac)])
