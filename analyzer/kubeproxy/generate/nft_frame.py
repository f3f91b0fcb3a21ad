"""kube-proxy's tables in nftables mode without any Service, in all layouts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from analyzer.kubeproxy.generate.config import ProxyConfig
from analyzer.kubeproxy.generate.nft_table import NftTable

CLUSTER_IPS: Final = "cluster-ips"
NODE_PORT_IPS: Final = "nodeport-ips"
REFUSED_IPS: Final = "no-endpoint-services"
REFUSED_NODE_PORTS: Final = "no-endpoint-nodeports"
FIREWALL_IPS: Final = "firewall-ips"
SERVICE_IPS: Final = "service-ips"
SERVICE_NODE_PORTS: Final = "service-nodeports"

FIREWALL_CHECK: Final = "jump firewall-check"
SERVICE_CHECK: Final = "jump service-endpoints-check"
NODE_PORT_CHECK: Final = "jump nodeport-endpoints-check"
CLUSTER_IP_CHECK: Final = "jump cluster-ips-check"

REJECT_CHAIN: Final = "reject-chain"
SET_MARK: Final = "meta mark set meta mark | 0x00004000"
TAKE_MARK: Final = "meta mark set meta mark ^ 0x00004000"
MASQUERADE: Final = "masquerade fully-random"
PORT: Final = "meta l4proto . th dport"


def write_sets(table: NftTable, *, node_port_ips: bool) -> None:
    """Write the sets and maps, empty; `node_port_ips`: whether NodePorts have addresses."""
    place = f"type {table.address_type} . inet_proto . inet_service : verdict"
    port = "type inet_proto . inet_service : verdict"
    refuse = "vmap to drop or reject packets to {} with no endpoints"
    told = [("set", CLUSTER_IPS, f"type {table.address_type}", "Active ClusterIPs")]
    if node_port_ips:
        of_nodes = f"type {table.address_type}"
        told.append(("set", NODE_PORT_IPS, of_nodes, "IPs that accept NodePort traffic"))
    told += [
        ("map", REFUSED_IPS, place, refuse.format("services")),
        ("map", REFUSED_NODE_PORTS, port, refuse.format("service nodeports")),
        ("map", FIREWALL_IPS, place, "destinations that are subject to LoadBalancerSourceRanges"),
        ("map", SERVICE_IPS, place, "ClusterIP, ExternalIP and LoadBalancer IP traffic"),
        ("map", SERVICE_NODE_PORTS, port, "NodePort traffic"),
    ]
    for kind, name, of_type, says in told:
        table.add_set(kind, name, of_type, f'comment "{says}"')


def write_base_chains(
    table: NftTable, filters: Mapping[str, tuple[str, str, tuple[str, ...]]]
) -> None:
    """Write the base chains: those of type filter, each with hook, priority and jumps, and nat's.

    The checks match new flows only.
    """
    for name, (hook, priority, jumps) in filters.items():
        table.add(name, f"type filter hook {hook} priority {priority}; policy accept;")
        table.add(name, *[f"ct state new {jump}" for jump in jumps])
    for hook, priority, chain in (
        ("prerouting", "dstnat", "services"),
        ("output", "-100", "services"),
        ("postrouting", "srcnat", "masquerading"),
    ):
        name = f"nat-{hook}"
        table.add(name, f"type nat hook {hook} priority {priority}; policy accept;")
        table.add(name, f"jump {chain}")


def write_dispatch(table: NftTable, proxy: ProxyConfig, node_ports: tuple[str, str]) -> None:
    """Write the chains that look a flow up; `node_ports` are the matches of one to a NodePort.

    The first is for the checks, the second for the DNAT.
    """
    checked, sent = node_ports
    place = f"{table.ip} daddr . {PORT}"
    table.add("nodeport-endpoints-check", f"{checked} {PORT} vmap @{REFUSED_NODE_PORTS}")
    table.add("service-endpoints-check", f"{place} vmap @{REFUSED_IPS}")
    table.add("firewall-check", f"{place} vmap @{FIREWALL_IPS}")
    table.add("services", f"{place} vmap @{SERVICE_IPS}")
    table.add("services", f"{sent} {PORT} vmap @{SERVICE_NODE_PORTS}")
    if proxy.node_address is not None:
        table.sets[NODE_PORT_IPS].add(proxy.node_address)


def write_cluster_ip_check(table: NftTable) -> None:
    """Write the rule that rejects flows to ports that ClusterIPs do not have."""
    says = "Reject traffic to invalid ports of ClusterIPs"
    table.add("cluster-ips-check", f'{table.ip} daddr @{CLUSTER_IPS} reject comment "{says}"')


def write_reject(table: NftTable) -> None:
    """Write the chain that elements for refused flows lead to."""
    says = f"helper for @{REFUSED_IPS} / @{REFUSED_NODE_PORTS}"
    table.add(REJECT_CHAIN, f'comment "{says}"', "reject")
