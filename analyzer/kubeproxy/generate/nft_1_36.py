"""The layout of 1.36 in nftables mode: maps of endpoints, and a set for hairpin connections.

Source: kubernetes 1.36, pkg/proxy/nftables/proxier.go, ``setupNFTables``, ``syncProxyRules``;
the captures of 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from analyzer.kubeproxy import names
from analyzer.kubeproxy.generate import nft_frame as frame
from analyzer.kubeproxy.generate.config import IPV4, ProxyConfig
from analyzer.kubeproxy.generate.nft_networks import networks_to_text
from analyzer.kubeproxy.generate.nft_services import ServiceChains, endpoint_name
from analyzer.kubeproxy.generate.nft_table import NftTable
from analyzer.kubeproxy.generate.reach import EndpointChain
from analyzer.kubeproxy.generate.specs import ServicePortSpec
from analyzer.model.addresses import address_to_text

FILTERS: Final = {
    "filter-prerouting-pre-dnat": ("prerouting", "dstnat - 10", (frame.FIREWALL_CHECK,)),
    "filter-output-pre-dnat": ("output", "-110", (frame.FIREWALL_CHECK,)),
    "filter-input": ("input", "filter", (frame.NODE_PORT_CHECK, frame.SERVICE_CHECK)),
    "filter-forward": ("forward", "filter", (frame.SERVICE_CHECK, frame.CLUSTER_IP_CHECK)),
    "filter-output": ("output", "filter", (frame.SERVICE_CHECK, frame.CLUSTER_IP_CHECK)),
}


def table(services: Iterable[ServicePortSpec], proxy: ProxyConfig) -> NftTable:
    """Return kube-proxy's table of the family of `proxy`.

    With ``--masquerade-all`` the rule for flows to ClusterIPs matches any source: that is written
    according to the source of kube-proxy, as no capture has it.
    """
    made = NftTable(proxy.family)
    ip, of_type = made.ip, made.address_type
    key = f"type {of_type} . {of_type} . inet_proto . inet_service"
    made.add_set("set", names.HAIRPIN_SET, key, 'comment "service hairpin connections"')
    frame.write_sets(made, node_port_ips=proxy.node_address is not None)
    frame.write_base_chains(made, FILTERS)
    # The chain `services` has a rule before those that all layouts have, and comes after these.
    for chain in ("nodeport-endpoints-check", "service-endpoints-check", "firewall-check"):
        made.add(chain)
    made.add("services", *_marks_of_cluster_ips(ip, proxy))
    frame.write_dispatch(made, proxy, _node_ports(ip, proxy))
    flow = f"{ip} saddr . {ip} daddr . {frame.PORT}"
    made.add(
        "masquerading",
        f"meta mark & 0x00004000 != 0x00000000 {frame.TAKE_MARK} {frame.MASQUERADE}",
        f"ct status dnat {flow} @{names.HAIRPIN_SET} {frame.MASQUERADE}",
    )
    frame.write_cluster_ip_check(made)
    if proxy.service_cidrs:
        networks = networks_to_text(proxy.service_cidrs)
        says = "Drop traffic to unallocated ClusterIPs"
        made.add("cluster-ips-check", f'{ip} daddr {networks} drop comment "{says}"')
    frame.write_reject(made)
    for service in services:
        _Chains(service, proxy, made).write()
    return made


def _marks_of_cluster_ips(ip: str, proxy: ProxyConfig) -> tuple[str, ...]:
    to_any = f"{ip} daddr @{frame.CLUSTER_IPS}"
    says = "masquerade clusterIP traffic"
    if proxy.masquerade_all:
        return (f'{to_any} {frame.SET_MARK} comment "{says}"',)
    if proxy.cluster_cidr is None:
        return ()
    outside = f"{ip} saddr != {proxy.cluster_cidr}"
    return (f'{to_any} {outside} {frame.SET_MARK} comment "{says} from outside cluster"',)


def _node_ports(ip: str, proxy: ProxyConfig) -> tuple[str, str]:
    """Return the matches of a flow to a NodePort; without a node address, any but loopback."""
    if proxy.node_address is not None:
        known = f"{ip} daddr @{frame.NODE_PORT_IPS}"
        return known, known
    loopback = "127.0.0.0/8" if proxy.family == IPV4 else "::1"
    return f"{ip} daddr != {loopback}", f"fib daddr type local {ip} daddr != {loopback}"


class _Chains(ServiceChains):
    @property
    def _mark(self) -> str:
        return frame.SET_MARK

    @property
    def _mark_outside(self) -> str:
        return f'{frame.SET_MARK} comment "masquerade"'

    @property
    def _guard_says(self) -> str:
        return ""

    def _endpoint_name(self, service: ServicePortSpec, text: str) -> str:
        # Without affinity an endpoint has no chain, and hashing each takes time.
        return text if service.affinity is None else endpoint_name(service, text)

    def _policy_chain(self, chain: str, targets: Sequence[EndpointChain]) -> None:
        if self._service.affinity is not None:
            self._draw_chains(chain, targets)
            return
        ends = [t.endpoint for t in targets]
        drawn = ", ".join(
            f"{at} : {address_to_text(end.address)} . {end.port}" for at, end in enumerate(ends)
        )
        to = f"dnat {self._table.ip} to numgen random mod {len(ends)} map {{ {drawn} }}"
        self._table.add(chain, f"meta l4proto {self._service.protocol} {to}")

    def _write_endpoints(self, targets: Sequence[EndpointChain]) -> None:
        hairpins = self._table.sets[names.HAIRPIN_SET]
        for target in targets:
            end = target.endpoint
            if end.node == self._proxy.node:
                hairpins.add(end.address, end.address, self._service.protocol, end.port)
            if self._service.affinity is not None:
                self._send(target)
