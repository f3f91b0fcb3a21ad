"""What one ServicePort adds to kube-proxy's tables in nftables mode, in all layouts.

Source: kubernetes, pkg/proxy/nftables/proxier.go, ``syncProxyRules``,
``writeServiceToEndpointRules``; the captures of 1.30 and 1.36.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from ipaddress import ip_network
from typing import Final

from analyzer.kubeproxy.generate import nft_frame as frame
from analyzer.kubeproxy.generate.config import ProxyConfig
from analyzer.kubeproxy.generate.nft_networks import networks_to_text
from analyzer.kubeproxy.generate.nft_table import ElementPart, NftTable
from analyzer.kubeproxy.generate.reach import EndpointChain, Reach, reach
from analyzer.kubeproxy.generate.specs import ServicePortSpec
from analyzer.kubeproxy.names import (
    AFFINITY_PREFIX,
    NFT_ENDPOINT_PREFIX,
    nft_endpoint_name,
    nft_service_name,
)

#: Seconds of the units in which nft prints a time.
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


class ServiceChains(ABC):
    """Writes the elements and chains of one ServicePort; each layout has its own subclass."""

    def __init__(self, service: ServicePortSpec, proxy: ProxyConfig, table: NftTable) -> None:
        self._service = service
        self._proxy = proxy
        self._table = table
        self._reach: Reach = reach(service, proxy, self._endpoint_name)
        self._name = nft_service_name(service.name, service.protocol)

    def write(self) -> None:
        """Write everything that the ServicePort adds."""
        found = self._reach
        self._table.sets[frame.CLUSTER_IPS].add(self._service.cluster_ip)
        if not found.any_at_all:
            self._refuse_inside(f"goto {frame.REJECT_CHAIN}")
            self._refuse_outside(f"goto {frame.REJECT_CHAIN}")
        else:
            self._lead_in()
        if self._service.has_firewall:
            self._firewall_chain()
        if found.any_at_all:
            self._affinity_sets()
            self._write_endpoints(found.every)
            if found.cluster:
                self._policy_chain(self._chain("service"), found.cluster)
            if found.local:
                self._policy_chain(self._chain("local"), found.local)
            if self._service.is_external:
                self._external_chain()

    # --- what layouts differ in ---

    @abstractmethod
    def _endpoint_name(self, service: ServicePortSpec, text: str) -> str:
        """Return the name of an endpoint's chain, after its prefix."""

    @property
    @abstractmethod
    def _mark(self) -> str:
        """The statement that marks a flow to be masqueraded."""

    @property
    @abstractmethod
    def _mark_outside(self) -> str:
        """The statement that marks all flows to external addresses."""

    @property
    @abstractmethod
    def _guard_says(self) -> str:
        """The comment of an element that leads to a firewall chain, or nothing."""

    @abstractmethod
    def _policy_chain(self, chain: str, targets: Sequence[EndpointChain]) -> None:
        """Write a chain that draws one of `targets`."""

    @abstractmethod
    def _write_endpoints(self, targets: Sequence[EndpointChain]) -> None:
        """Write everything for each endpoint."""

    @property
    def _inside(self) -> str:
        """The chain of flows to the ClusterIP."""
        return self._chain("local" if self._service.internal_local else "service")

    def _chain(self, kind: str) -> str:
        return f"{kind}-{self._name}"

    @property
    def _says(self) -> str:
        return f' comment "{self._service.name}"'

    # --- elements ---

    def _lead_in(self) -> None:
        service, table, outside = self._service, self._table, self._chain("external")
        if self._reach.drops_inside:
            self._refuse_inside("drop")
        else:
            self._lead(service.cluster_ip, self._inside)
        for address in (*service.external_ips, *service.load_balancer_ips):
            self._lead(address, outside)
        if service.node_port:
            key = service.protocol, service.node_port
            table.sets[frame.SERVICE_NODE_PORTS].add(*key, value=f" : goto {outside}")
        if self._reach.drops_outside:
            self._refuse_outside("drop")

    def _lead(self, address: ElementPart, chain: str) -> None:
        key = address, self._service.protocol, self._service.port
        self._table.sets[frame.SERVICE_IPS].add(*key, value=f" : goto {chain}")

    def _refuse_inside(self, verdict: str) -> None:
        self._refuse(self._service.cluster_ip, verdict)

    def _refuse_outside(self, verdict: str) -> None:
        service = self._service
        for address in (*service.external_ips, *service.load_balancer_ips):
            self._refuse(address, verdict)
        if service.node_port:
            key = service.protocol, service.node_port
            value = f"{self._says} : {verdict}"
            self._table.sets[frame.REFUSED_NODE_PORTS].add(*key, value=value)

    def _refuse(self, address: ElementPart, verdict: str) -> None:
        key = address, self._service.protocol, self._service.port
        self._table.sets[frame.REFUSED_IPS].add(*key, value=f"{self._says} : {verdict}")

    # --- chains ---

    def _firewall_chain(self) -> None:
        """Write the chain that drops flows from outside the source ranges."""
        service, chain, table = self._service, self._chain("firewall"), self._table
        allowed = list(service.load_balancer_source_ranges)
        own = self._proxy.node_address
        if own is not None and any(own in network for network in allowed):
            # On a node that has the address itself, its own flows come from there.
            allowed += map(ip_network, service.load_balancer_ips)
        for address in service.load_balancer_ips:
            key = address, service.protocol, service.port
            value = f"{self._guard_says} : goto {chain}"
            table.sets[frame.FIREWALL_IPS].add(*key, value=value)
        table.add(chain, f"{table.ip} saddr != {networks_to_text(allowed)} drop")

    def _affinity_sets(self) -> None:
        if self._service.affinity is None:
            return
        told = (
            f"type {self._table.address_type}",
            "size 65535",
            "flags dynamic,timeout",
            f"timeout {_seconds_to_text(self._service.affinity)}",
        )
        for target in self._reach.every:
            self._table.add_set("set", f"{AFFINITY_PREFIX}{target.chain}", *told)

    def _draw_chains(self, chain: str, targets: Sequence[EndpointChain]) -> None:
        """Write rules that draw an endpoint's chain; with affinity, a client keeps its chain."""
        table, names = self._table, [target.chain for target in targets]
        if self._service.affinity is not None:
            for name in names:
                known = f"{table.ip} saddr @{AFFINITY_PREFIX}{name}"
                table.add(chain, f"{known} goto {NFT_ENDPOINT_PREFIX}{name}")
        drawn = [f"{at} : goto {NFT_ENDPOINT_PREFIX}{name}" for at, name in enumerate(names)]
        table.add(chain, f"numgen random mod {len(names)} vmap {{ {', '.join(drawn)} }}")

    def _send(self, target: EndpointChain) -> None:
        """Write the end of an endpoint's chain."""
        table, name = self._table, target.chain
        chain = f"{NFT_ENDPOINT_PREFIX}{name}"
        if self._service.affinity is not None:
            table.add(chain, f"update @{AFFINITY_PREFIX}{name} {{ {table.ip} saddr }}")
        to = f"dnat to {target.endpoint.destination}"
        table.add(chain, f"meta l4proto {self._service.protocol} {to}")

    def _external_chain(self) -> None:
        """Write the chain for external flows: they are masqueraded, or stay on this node."""
        table, chain, everywhere = self._table, self._chain("external"), self._chain("service")
        if not self._service.external_local:
            table.add(chain, self._mark_outside, f"goto {everywhere}")
            return
        if self._proxy.cluster_cidr is not None:
            pods = f"{table.ip} saddr {self._proxy.cluster_cidr}"
            table.add(chain, f'{pods} goto {everywhere} comment "short-circuit pod traffic"')
        from_here = "fib saddr type local"
        table.add(
            chain,
            f'{from_here} {self._mark} comment "masquerade local traffic"',
            f'{from_here} goto {everywhere} comment "short-circuit local traffic"',
        )
        if not self._reach.drops_outside:
            table.add(chain, f"goto {self._chain('local')}")


def endpoint_name(service: ServicePortSpec, text: str) -> str:
    """Return the name of an endpoint's chain, after its prefix."""
    return nft_endpoint_name(service.name, service.protocol, text)


def _seconds_to_text(seconds: int) -> str:
    """Return a time as nft prints it. Source: nft 1.0.6, src/datatype.c, ``time_print``."""
    found = ""
    for unit, size in _UNITS:
        count, seconds = divmod(seconds, size)
        found += f"{count}{unit}" if count else ""
    return found or "0s"
