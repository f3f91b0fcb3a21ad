"""The layout of 1.30 in nftables mode: a chain for each endpoint, and one that marks flows.

Source: kubernetes 1.30, pkg/proxy/nftables/proxier.go, ``nftablesBaseChains``,
``setupNFTables``, ``syncProxyRules``; the captures of 1.30.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from analyzer.kubeproxy.generate import nft_frame as frame
from analyzer.kubeproxy.generate.config import ProxyConfig
from analyzer.kubeproxy.generate.nft_services import ServiceChains, endpoint_name
from analyzer.kubeproxy.generate.nft_table import NftTable
from analyzer.kubeproxy.generate.reach import EndpointChain
from analyzer.kubeproxy.generate.specs import ServicePortSpec
from analyzer.kubeproxy.names import NFT_ENDPOINT_PREFIX
from analyzer.model.addresses import address_to_text

_MARK_CHAIN: Final = "mark-for-masquerade"
_FILTERS: Final = {
    "filter-prerouting": ("prerouting", "dstnat - 10", (frame.FIREWALL_CHECK,)),
    "filter-input": ("input", "-110", (frame.NODE_PORT_CHECK, frame.SERVICE_CHECK)),
    "filter-forward": ("forward", "-110", (frame.SERVICE_CHECK, frame.CLUSTER_IP_CHECK)),
    "filter-output": ("output", "-110", (frame.SERVICE_CHECK, frame.FIREWALL_CHECK)),
    "filter-output-post-dnat": ("output", "-90", (frame.CLUSTER_IP_CHECK,)),
}


def table(services: Iterable[ServicePortSpec], proxy: ProxyConfig) -> NftTable:
    """Return kube-proxy's table of the family of `proxy`."""
    made = NftTable(proxy.family)
    frame.write_sets(made, node_port_ips=True)
    frame.write_base_chains(made, _FILTERS)
    to_node = f"{made.ip} daddr @{frame.NODE_PORT_IPS}"
    frame.write_dispatch(made, proxy, (to_node, to_node))
    made.add(
        "masquerading",
        "meta mark & 0x00004000 == 0x00000000 return",
        frame.TAKE_MARK,
        frame.MASQUERADE,
    )
    frame.write_cluster_ip_check(made)
    made.add(_MARK_CHAIN, frame.SET_MARK)
    frame.write_reject(made)
    for service in services:
        _Chains(service, proxy, made).write()
    return made


class _Chains(ServiceChains):
    @property
    def _mark(self) -> str:
        return f"jump {_MARK_CHAIN}"

    @property
    def _mark_outside(self) -> str:
        return self._mark

    @property
    def _guard_says(self) -> str:
        return self._says

    def _endpoint_name(self, service: ServicePortSpec, text: str) -> str:
        return endpoint_name(service, text)

    def _policy_chain(self, chain: str, targets: Sequence[EndpointChain]) -> None:
        service, made, pods = self._service, self._table, self._proxy.cluster_cidr
        # 1.30 parses --masquerade-all and then ignores it: ``NewProxier``.
        if chain == self._inside and pods is not None:
            address = address_to_text(service.cluster_ip)
            to_it = f"{made.ip} daddr {address} {service.protocol} dport {service.port}"
            made.add(chain, f"{to_it} {made.ip} saddr != {pods} {self._mark}")
        self._draw_chains(chain, targets)

    def _write_endpoints(self, targets: Sequence[EndpointChain]) -> None:
        ip = self._table.ip
        for target in targets:
            own = f"{ip} saddr {address_to_text(target.endpoint.address)}"
            self._table.add(f"{NFT_ENDPOINT_PREFIX}{target.chain}", f"{own} {self._mark}")
            self._send(target)
