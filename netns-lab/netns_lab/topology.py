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
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Final

from netns_lab.namespace import Namespace
from netns_lab.netlink import Netlink
from netns_lab.plan import HostPlan, Plan

#: The next hop of a pod; link-local, never routed. Its MAC is what counts.
_HOP: Final = IPv4Address("169.254.1.1")
#: The node's device towards the client as somebody outside.
OUTSIDE: Final = "outside"
#: Where the node sends what is for nobody here.
_WORLD: Final = IPv4Address("198.19.0.1")
_EVERYTHING: Final = IPv4Network("0.0.0.0/0")

#: Indexes of devices: the loopback; a host's own; the node's; the fabric and, behind it, its ports.
#: The ends of a veth differ (`Netlink`).
_LOOPBACK: Final = 1
_HOST: Final = 2
_HOST_OUTSIDE: Final = 3
_CLIENT, _OUTSIDE, _PODS, _UPLINK, _BRIDGE = 11, 12, 13, 14, 15
_FABRIC: Final = 100

#: Routing rules of the client: the first is there while it is mute.
_MUTE: Final = 1
_LOOK_LOCALLY: Final = 2
_TABLE_LOCAL: Final = 255


@dataclass(slots=True)
class Host:
    """A namespace of the lab and its device towards the node."""

    namespace: Namespace
    mac: str
    plan: HostPlan | None = None
    device: str = "eth0"
    index: int = _HOST


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
    def namespaces(self) -> list[Namespace]:
        """All of the lab's."""
        return [self.node, self.fabric, self.client.namespace, *(h.namespace for h in self.hosts)]

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
        outside=Host(client.namespace, _mac(6), device="eth1", index=_HOST_OUTSIDE),
        own_pods=own_pods,
        others=others,
        world=world,
        gateway_mac=_mac(5, 1),
        outer_mac=_mac(5, 4),
        pods_mac=_mac(5, 2),
        uplink_mac=_mac(5, 3),
        fabric=fabric,
    )
    for namespace in built.namespaces:
        _quiet(namespace)
    _wire(built)
    _set_up_node(built)
    _set_up_client(built)
    for host in (own_pods, *others):
        _set_up_host(host, wanted)
    asked = Netlink(world.namespace)
    asked.up(_LOOPBACK)
    asked.up(world.index)
    asked.send()
    asked.close()
    return built


def _quiet(namespace: Namespace) -> None:
    """Switch off what would send packets by itself, or drop ours, before devices exist."""
    with namespace:
        for scope in ("all", "default"):
            _write(f"net/ipv4/conf/{scope}/rp_filter", 0)
            _write(f"net/ipv4/conf/{scope}/accept_local", 1)
            _write(f"net/ipv4/conf/{scope}/send_redirects", 0)  # by a bridge both ways
            _write(f"net/ipv6/conf/{scope}/disable_ipv6", 1)


def _write(name: str, value: object) -> None:
    Path("/proc/sys", name).write_text(str(value), encoding="ascii")


def _wire(lab: Topology) -> None:
    wanted = lab.plan
    node = Netlink(lab.node)
    node.up(_LOOPBACK)
    ends = (
        (wanted.client_device, _CLIENT, _mac(5, 1), lab.client),
        (OUTSIDE, _OUTSIDE, _mac(5, 4), lab.outside),
        (wanted.pods_device, _PODS, _mac(5, 2), lab.own_pods),
    )
    for device, index, mac, host in ends:
        node.veth(device, index, mac, (host.namespace, host.device, host.index, host.mac))
    if wanted.bridge is not None:
        node.bridge(wanted.bridge, _BRIDGE)
    for _, index, _, host in ends:
        port = wanted.bridge is not None and index != _OUTSIDE
        node.up(index, master=_BRIDGE if port else None)
        if port:
            node.forward(index, host.mac)
    node.send()
    node.close()
    _wire_fabric(lab)


def _wire_fabric(lab: Topology) -> None:
    fabric = Netlink(lab.fabric)
    # Its table is written here; learning would only forget it.
    fabric.bridge("fabric", _FABRIC)
    peer = lab.node, "eth0", _UPLINK, _mac(5, 3)
    fabric.veth("uplink", _FABRIC + 1, _mac(7), peer)
    fabric.up(_FABRIC + 1, master=_FABRIC)
    fabric.forward(_FABRIC + 1, _mac(5, 3))
    for at, host in enumerate((lab.world, *lab.others)):
        index = _FABRIC + 2 + at
        to = host.namespace, host.device, host.index, host.mac
        fabric.veth(f"n{at}", index, _mac(8, at), to)
        fabric.up(index, master=_FABRIC)
        fabric.forward(index, host.mac)
    fabric.send()
    fabric.close()
    with lab.fabric:
        for name in ("iptables", "ip6tables", "arptables"):
            # On in a new namespace, where the module is there: a walk of hooks for each frame.
            switch = Path(f"/proc/sys/net/bridge/bridge-nf-call-{name}")
            if switch.exists():
                switch.write_text("0", encoding="ascii")


def _set_up_node(lab: Topology) -> None:
    wanted = lab.plan
    asked = Netlink(lab.node)
    asked.up(_UPLINK)
    asked.address(_UPLINK, wanted.node_address)
    of_pods = (_BRIDGE, _BRIDGE) if wanted.bridge is not None else (_CLIENT, _PODS)
    for address in wanted.pod_clients:
        _beside(asked, of_pods[0], address, lab.client.mac)
    for address in wanted.external_clients:
        _beside(asked, _OUTSIDE, address, lab.outside.mac)
    for address in wanted.own_pods.endpoints:
        _beside(asked, of_pods[1], address, lab.own_pods.mac)
    for host in lab.others:
        assert host.plan is not None
        assert host.plan.address is not None
        _beside(asked, _UPLINK, host.plan.address, host.mac)
        for network in host.plan.networks:
            asked.route(network, _UPLINK, host.plan.address)
    _beside(asked, _UPLINK, _WORLD, lab.world.mac)
    asked.route(_EVERYTHING, _UPLINK, _WORLD)
    asked.send()
    asked.close()
    lab.node.set("net/ipv4/ip_forward", 1)


def _beside(asked: Netlink, index: int, address: IPv4Address, mac: str) -> None:
    """Make an address a neighbour behind a device."""
    asked.route(IPv4Network(address), index)
    asked.neighbour(index, address, mac)


def _set_up_client(lab: Topology) -> None:
    asked = Netlink(lab.client.namespace)
    for index in (_LOOPBACK, lab.client.index, lab.outside.index):
        asked.up(index)
    for address in (*lab.plan.pod_clients, *lab.plan.external_clients):
        asked.address(lab.client.index, address)
    _default_route(asked, lab.client.index, _HOP, lab.gateway_mac)
    # Behind the rule that `mute` adds.
    asked.rule(_LOOK_LOCALLY, _TABLE_LOCAL)
    asked.rule(0, _TABLE_LOCAL, delete=True)
    asked.send()
    asked.close()


def mute(lab: Topology, *, on: bool) -> None:
    """Let the client's kernel be silent, or answer what comes as a client would.

    While packets are counted it would answer each reply with a reset or an error of ICMP, and each
    of these passes all rules.
    """
    asked = Netlink(lab.client.namespace)
    asked.rule(_MUTE, delete=not on)
    asked.send()
    asked.close()


def _default_route(asked: Netlink, index: int, hop: IPv4Address, mac: str) -> None:
    asked.neighbour(index, hop, mac)
    asked.route(_EVERYTHING, index, hop)


def _set_up_host(host: Host, wanted: Plan) -> None:
    assert host.plan is not None
    asked = Netlink(host.namespace)
    asked.up(_LOOPBACK)
    asked.up(host.index)
    if not host.plan.dead:
        if host.plan.address is not None and host.plan.address not in host.plan.silent:
            asked.address(host.index, host.plan.address)
        for network in host.plan.networks:
            asked.own(network)
        # More specific than the network it is in: taken in, and no word said.
        for address in sorted(map(str, host.plan.silent)):
            asked.swallow(IPv4Network(address))
        own = host.plan.address is None
        hop, mac = (_HOP, _mac(5, 2)) if own else (wanted.node_address, _mac(5, 3))
        _default_route(asked, host.index, hop, mac)
    asked.send()
    asked.close()
