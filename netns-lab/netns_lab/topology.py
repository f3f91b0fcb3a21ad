"""The small cluster around one node, as far as the node's own rules can tell.

    client === node (the dump is loaded here) --- fabric --- other node, one each
                 |                                    `----- world (all that is none of these)
               pods (this node's own endpoints)

The client has two devices: as a pod it sends by one, as somebody outside by the other. Devices of
pods have names by which the rules know them, or are ports of a bridge that has.

Neighbours and the bridge's table are static, so that no packet waits for ARP or is flooded, and
so that a dead node is a silent peer behind a link that is up: its namespace has no address, it
takes every packet and says nothing. A node owns its endpoints by AnyIP: local routes, no devices.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import Final

from netns_lab.command import ip_batch, run
from netns_lab.namespace import Namespace
from netns_lab.plan import HostPlan, Plan

#: The next hop of a pod; link-local, never routed. Its MAC is what counts.
_HOP: Final = IPv4Address("169.254.1.1")
#: The node's device towards the client as somebody outside.
OUTSIDE: Final = "outside"
#: Where the node sends what is for nobody here.
_WORLD: Final = IPv4Address("198.19.0.1")


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
    outside: Host
    own_pods: Host
    others: list[Host]
    world: Host
    #: MACs of the node's devices: towards the client, twice, its own pods, and the fabric.
    gateway_mac: str
    outer_mac: str
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
        outside=Host(client.namespace, _mac(6), device="eth1"),
        own_pods=own_pods,
        others=others,
        world=world,
        gateway_mac=_mac(5, 1),
        outer_mac=_mac(5, 4),
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
        namespace.set(f"net/ipv4/conf/{scope}/send_redirects", 0)  # by a bridge both ways
        namespace.set(f"net/ipv6/conf/{scope}/disable_ipv6", 1)


def _wire(lab: Topology) -> None:
    node = lab.node.path
    ip_batch(
        lab.node,
        [
            "link set lo up",
            _veth(lab.plan.client_device, _mac(5, 1), lab.client),
            _veth(OUTSIDE, _mac(5, 4), lab.outside),
            _veth(lab.plan.pods_device, _mac(5, 2), lab.own_pods),
            *_bridge(lab.plan),
        ],
    )
    if lab.plan.bridge:
        of_pods = ((lab.client, lab.plan.client_device), (lab.own_pods, lab.plan.pods_device))
        lines = [f"fdb replace {h.mac} dev {device} master static" for h, device in of_pods]
        run(lab.node, ["bridge", "-batch", "-"], "\n".join(lines) + "\n")
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


def _bridge(wanted: Plan) -> list[str]:
    """Return what makes the devices of pods ports of a bridge, if that is what the rules know."""
    if wanted.bridge is None:
        return []
    ports = (wanted.client_device, wanted.pods_device)
    return [
        f"link add {wanted.bridge} type bridge",
        f"link set {wanted.bridge} up",
        *(f"link set {port} master {wanted.bridge}" for port in ports),
    ]


def _veth(device: str, mac: str, host: Host) -> str:
    return (
        f"link add {device} address {mac} type veth peer name {host.device} address {host.mac} "
        f"netns {host.namespace.path}"
    )


def _set_up_node(lab: Topology) -> None:
    wanted = lab.plan
    devices = (wanted.client_device, OUTSIDE, wanted.pods_device, "eth0")
    lines = [f"link set {device} up" for device in devices]
    lines.append(f"addr add {wanted.node_address}/32 dev eth0")
    for address in wanted.pod_clients:
        lines += _neighbour(address, wanted.bridge or wanted.client_device, lab.client.mac)
    for address in wanted.external_clients:
        lines += _neighbour(address, OUTSIDE, lab.outside.mac)
    for address in wanted.own_pods.endpoints:
        lines += _neighbour(address, wanted.bridge or wanted.pods_device, lab.own_pods.mac)
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
            "link set eth1 up",
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
