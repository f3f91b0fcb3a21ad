"""The small cluster around one node, as far as the node's own rules can tell.

    client === node (the dump is loaded here) === fabric --- other node, one each
                 |                                     `----- world (all that is none of these)
               pods (this node's own endpoints)

The client has two devices: one to send as a pod of this node, and one as a client outside the
cluster. A pod of another node sends by the fabric's. Devices of pods have names that the rules
recognise, or are ports of a bridge that has.

Neighbours and a bridge's forwarding table are static, so that no packet waits for ARP or is
flooded, and so that a dead node is a silent peer on a link that is up: its namespace has no
address, receives every packet and sends nothing. A node owns its endpoints by AnyIP: local routes
without devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Final

from analyzer.kubeproxy.view import Source
from analyzer.model.addresses import IPV6, Address, Network
from netns_lab import command
from netns_lab.gates import UPLINK, Gate, set_up
from netns_lab.namespace import Namespace
from netns_lab.netlink import Netlink
from netns_lab.plan import WORLD, HostPlan, LabPlan
from netns_lab.servers import FAMILIES

#: Next hop of pods; link-local and never routed, since only its MAC address matters.
_HOP: Final = {4: ip_address("169.254.1.1"), 6: ip_address("fe80::6b:6f")}
#: The node's device towards the client outside the cluster.
OUTSIDE: Final = "outside"
_EVERYTHING: Final[dict[int, Network]] = {4: ip_network("0.0.0.0/0"), 6: ip_network("::/0")}

#: Indexes of devices: loopback; a host's own; the node's; the fabric bridge, followed by its ports.
#: The two ends of a veth have different indexes (see `Netlink`).
_LOOPBACK: Final = 1
_HOST: Final = 2
_HOST_OUTSIDE: Final = 3
_CLIENT, _OUTSIDE, _PODS, _UPLINK, _BRIDGE = 11, 12, 13, 14, 15
_FABRIC: Final = 100

#: Value of ``addr_gen_mode``: IN6_ADDR_GEN_MODE_NONE.
_NO_ADDRESSES: Final = 1

#: Priorities of the ip rules of hosts whose endpoints send.
_BY_THE_NODE, _LOOK_LOCALLY = 1, 2
TABLE_LOCAL: Final = 255
_TABLE_OF_PODS: Final = 100


@dataclass(slots=True)
class Host:
    """A namespace of the lab and its device towards the node."""

    namespace: Namespace
    mac: str
    plan: HostPlan | None = None
    device: str = "eth0"
    index: int = _HOST
    #: For pods of a node with rules of its own: that node.
    gate: Gate | None = None

    @property
    def deaf_mac(self) -> str:
        """A MAC address that its device does not have, at which only packet sockets hear.

        As a host does with what a switch floods, its kernel drops that at once (ip_rcv_core).
        """
        return f"06{self.mac[2:]}"

    @property
    def entry(self) -> tuple[Namespace, str, int, str]:
        """Its connection to the fabric: namespace, device, its index and MAC address."""
        if self.gate is not None:
            return self.gate.namespace, "eth0", UPLINK, self.gate.mac
        return self.namespace, self.device, self.index, self.mac


@dataclass(slots=True, kw_only=True)
class LabTopology:
    """The lab, built."""

    plan: LabPlan
    node: Namespace
    client: Host
    outside: Host
    elsewhere: Host
    own_pods: Host
    others: list[Host]
    world: Host
    #: MAC addresses of the node's devices: two towards the client, its own pods, and the fabric.
    gateway_mac: str
    outer_mac: str
    pods_mac: str
    uplink_mac: str
    fabric: Namespace = field(repr=False)

    @property
    def namespaces(self) -> list[Namespace]:
        """All namespaces of the lab."""
        others = [
            *(host.namespace for host in self.hosts),
            *(gate.namespace for gate in self.gates),
        ]
        return [self.node, self.fabric, self.client.namespace, *others]

    @property
    def gates(self) -> list[Gate]:
        """Other nodes with rules of their own."""
        return [each.gate for each in self.others if each.gate is not None]

    @property
    def of_pods(self) -> tuple[int, int]:
        """Indexes of the node's devices towards pods that are clients and those that are not."""
        return (_BRIDGE, _BRIDGE) if self.plan.bridge is not None else (_CLIENT, _PODS)

    def senders(self, source: Source) -> tuple[Host, str, int]:
        """Return where a kind of source sends from, to which MAC, and the node's device there."""
        match source:
            case Source.EXTERNAL:
                return self.outside, self.outer_mac, _OUTSIDE
            case Source.POD_ELSEWHERE:
                return self.elsewhere, self.uplink_mac, _UPLINK
            case _:
                return self.client, self.gateway_mac, self.of_pods[0]

    @property
    def hosts(self) -> list[Host]:
        """All namespaces that receive packets, including the world."""
        return [self.own_pods, *self.others, self.world]


def _mac(kind: int, number: int = 0) -> str:
    """Return a locally administered MAC address."""
    return f"02:6b:6f:{kind:02x}:{number >> 8:02x}:{number & 255:02x}"


def build(wanted: LabPlan) -> LabTopology:
    """Create the namespaces, devices and routes.

    Raises:
        LabError: the kernel or ip(8) refuses.
    """
    node, fabric = Namespace(wanted.node), Namespace("fabric")
    client = Host(Namespace("client"), _mac(1))
    own_pods = Host(Namespace(wanted.own_pods.name), _mac(2), wanted.own_pods)
    world = Host(Namespace("world"), _mac(3))
    others = [_other(each, at) for at, each in enumerate(wanted.others)]
    built = LabTopology(
        plan=wanted,
        node=node,
        client=client,
        outside=Host(client.namespace, _mac(6), device="eth1", index=_HOST_OUTSIDE),
        elsewhere=Host(fabric, _mac(6, 1), device="uplink", index=_FABRIC),
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
        _quiet(namespace, wanted.versions)
    _wire(built)
    _set_up_node(built)
    _set_up_client(built)
    for host in others:
        if host.gate is not None:
            assert host.plan is not None
            pods = host.namespace, host.device, host.index, host.mac
            set_up(host.gate, host.plan, pods, built.uplink_mac, wanted)
            _forward(host.gate.namespace, wanted)
    for host in (own_pods, *others):
        _set_up_host(host, wanted)
    asked = Netlink(world.namespace)
    asked.up(_LOOPBACK)
    asked.up(world.index)
    asked.send()
    asked.close()
    return built


def _other(wanted: HostPlan, at: int) -> Host:
    if wanted.pod_device is None:
        return Host(Namespace(wanted.name), _mac(4, at), wanted)
    gate = Gate(Namespace(wanted.name), _mac(4, at), _mac(9, at))
    return Host(Namespace(f"pods of {wanted.name}"), _mac(10, at), wanted, gate=gate)


def _quiet(namespace: Namespace, versions: Sequence[int]) -> None:
    """Disable what would send packets by itself, or drop ours, before devices exist."""
    with namespace:
        _write("net/ipv4/ip_early_demux", 0)  # few packets have a socket here
        for scope in ("all", "default"):
            _write(f"net/ipv4/conf/{scope}/rp_filter", 0)
            _write(f"net/ipv4/conf/{scope}/accept_local", 1)
            _write(f"net/ipv4/conf/{scope}/send_redirects", 0)  # by a bridge both ways
            if IPV6 not in versions:
                _write(f"net/ipv6/conf/{scope}/disable_ipv6", 1)
                continue
            for name in ("accept_ra", "accept_dad", "router_solicitations", "accept_redirects"):
                _write(f"net/ipv6/conf/{scope}/{name}", 0)
            # No IPv6 addresses of its own, which it would check for duplicates.
            _write(f"net/ipv6/conf/{scope}/addr_gen_mode", _NO_ADDRESSES)
            # Reports of multicast groups are repeated at once (see `ready`).
            _write(f"net/ipv6/conf/{scope}/mldv2_unsolicited_report_interval", 1)
        if IPV6 in versions:
            # Answers come from AnyIP addresses, which no device has.
            _write("net/ipv6/ip_nonlocal_bind", 1)


def _answer_by_the_node(asked: Netlink, host: Host, wanted: LabPlan) -> None:
    """Route answers from one endpoint of a host to another via the node, as between pods."""
    assert host.plan is not None
    for address in host.plan.endpoints:
        hop = _hop_of(wanted, host, address.version)
        asked.route(ip_network(address), host.index, hop, table=_TABLE_OF_PODS)
    for version in wanted.versions:
        family = FAMILIES[version]
        asked.rule(_BY_THE_NODE, _TABLE_OF_PODS, family=family, made_here=True)
        asked.rule(_LOOK_LOCALLY, TABLE_LOCAL, family=family)
        asked.rule(0, TABLE_LOCAL, family=family, delete=True)


def _write(name: str, value: object) -> None:
    Path("/proc/sys", name).write_text(str(value), encoding="ascii")


def _wire(lab: LabTopology) -> None:
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
        node.up(index, master=_BRIDGE if port else None, of_pods=port)
        if port:
            node.forward(index, host.mac)
            node.forward(index, host.deaf_mac)
    node.send()
    node.close()
    _wire_fabric(lab)


def _wire_fabric(lab: LabTopology) -> None:
    """Give each host a macvlan device on the other end of the node's: a bridge takes longer."""
    fabric, elsewhere = Netlink(lab.fabric), lab.elsewhere
    peer = lab.node, "eth0", _UPLINK, _mac(5, 3)
    fabric.veth(elsewhere.device, elsewhere.index, elsewhere.mac, peer)
    fabric.up(elsewhere.index)
    for host in (lab.world, *lab.others):
        fabric.macvlan(elsewhere.index, host.entry)
    fabric.send()
    fabric.close()


def _set_up_node(lab: LabTopology) -> None:
    wanted = lab.plan
    asked = Netlink(lab.node)
    asked.up(_UPLINK)
    for address in wanted.node_addresses:
        asked.address(_UPLINK, address)
    for address in wanted.own_clients:
        asked.own(ip_network(address))
    for source in (Source.POD, Source.EXTERNAL, Source.POD_ELSEWHERE):
        host, _, device = lab.senders(source)
        for address in wanted.clients_from(source):
            asked.beside(device, address, host.mac if source is Source.POD else host.deaf_mac)
    for address in wanted.own_pods.endpoints:
        asked.beside(lab.of_pods[1], address, lab.own_pods.mac)
    for host in lab.others:
        assert host.plan is not None
        hops = {address.version: address for address in host.plan.addresses}
        for address in hops.values():
            asked.beside(_UPLINK, address, host.entry[3])
        for network in host.plan.networks:
            asked.route(network, _UPLINK, hops[network.version])
    for version in wanted.versions:
        asked.beside(_UPLINK, WORLD[version], lab.world.mac)
        asked.route(_EVERYTHING[version], _UPLINK, WORLD[version])
    asked.send()
    asked.close()
    _forward(lab.node, wanted)


def _set_up_client(lab: LabTopology) -> None:
    asked = Netlink(lab.client.namespace)
    for index in (_LOOPBACK, lab.client.index, lab.outside.index):
        asked.up(index)
    for address in lab.plan.clients_from(Source.POD):
        asked.address(lab.client.index, address)
    for version in lab.plan.versions:
        asked.default_route(lab.client.index, _HOP[version], lab.gateway_mac)
    asked.send()
    asked.close()


def move_outside(lab: LabTopology) -> Namespace:
    """Move the client outside the cluster to a namespace of its own, for programs to run in.

    The plan must have addresses for it. No flows are counted from there any more; the kernel there
    is deaf until `muting.set_deaf` changes that.

    Raises:
        LabError: ip(8) refuses.
    """
    own = Namespace("outside")
    _quiet(own, lab.plan.versions)
    moves = ["ip", "link", "set", "dev", lab.outside.device, "netns", own.path]
    command.run(lab.client.namespace, moves)
    asked = Netlink(own)
    asked.up(_LOOPBACK)
    asked.up(lab.outside.index)
    for address in lab.plan.clients_from(Source.EXTERNAL):
        asked.address(lab.outside.index, address)
    for version in lab.plan.versions:
        asked.default_route(lab.outside.index, _HOP[version], lab.outer_mac)
    asked.send()
    asked.close()
    return own


def stand_as(lab: LabTopology, host: Host, address: Address) -> None:
    """Make programs in a host's namespace send from this address unless they bind another."""
    assert host.plan is not None
    asked = Netlink(host.namespace)
    hop = _hop_of(lab.plan, host, address.version)
    if address.version == IPV6:  # a route to it is not enough there
        asked.address(_LOOPBACK, address)
    asked.route(_EVERYTHING[address.version], host.index, hop, source=address)
    for each in host.plan.endpoints:
        if each.version == address.version:
            network = ip_network(each)
            asked.route(network, host.index, hop, table=_TABLE_OF_PODS, source=address)
    asked.send()
    asked.close()


def _hop_of(wanted: LabPlan, host: Host, version: int) -> Address:
    """Return the next hop of a host: a link-local one for namespaces of pods alone."""
    own = host.plan is not None and (not host.plan.addresses or host.gate is not None)
    return _HOP[version] if own else wanted.node_address(version)


def _forward(namespace: Namespace, wanted: LabPlan) -> None:
    with namespace:
        _write("net/ipv4/ip_forward", 1)
        if IPV6 in wanted.versions:
            _write("net/ipv6/conf/all/forwarding", 1)


def _set_up_host(host: Host, wanted: LabPlan) -> None:
    assert host.plan is not None
    asked = Netlink(host.namespace)
    asked.up(_LOOPBACK)
    asked.up(host.index)
    if not host.plan.dead:
        for address in () if host.gate is not None else host.plan.addresses:
            if address not in host.plan.silent:
                asked.address(host.index, address)
        for network in host.plan.networks:
            asked.own(network)
        if host.gate is not None or not host.plan.addresses:
            # Errors of ICMPv6 need an address of their own, or they leave from ::1.
            own = [a for a in host.plan.endpoints if a.version == IPV6]
            for address in [a for a in own if a not in host.plan.silent][:1]:
                asked.address(_LOOPBACK, address)
        # More specific than their network: received, and discarded silently.
        for address in sorted(host.plan.silent, key=str):
            asked.swallow(ip_network(address))
        for version in wanted.versions:
            hop = _hop_of(wanted, host, version)
            mac = _mac(5, 3) if host.plan.addresses else _mac(5, 2)
            mac = mac if host.gate is None else host.gate.pods_mac
            asked.default_route(host.index, hop, mac)
        for address in wanted.clients_from(Source.POD_ELSEWHERE):
            if any(address in network for network in host.plan.networks):
                # The client's address is in this host's pod network: send to it via the node.
                hop = _hop_of(wanted, host, address.version)
                asked.route(ip_network(address), host.index, hop, table=TABLE_LOCAL)
        if wanted.endpoints_send:
            _answer_by_the_node(asked, host, wanted)
    asked.send()
    asked.close()
