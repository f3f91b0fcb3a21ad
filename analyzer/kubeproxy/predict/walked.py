"""Rules that a kube-proxy would write, generated and evaluated like any dump."""

from __future__ import annotations

from collections.abc import Iterable

from analyzer.kubeproxy.generate.config import ProxyConfig
from analyzer.kubeproxy.generate.render import render_nft, render_rules
from analyzer.kubeproxy.generate.specs import ServicePortSpec
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.view import View
from analyzer.model.cluster import Cluster


def rules(services: Iterable[ServicePortSpec], proxy: ProxyConfig, mode: ProxyMode) -> str:
    """Return the rules of one node, for the IP version of its kube-proxy."""
    render = render_nft if mode is ProxyMode.NFTABLES else render_rules
    return render(services, proxy)


def walked(
    services: Iterable[ServicePortSpec], proxy: ProxyConfig, mode: ProxyMode, cluster: Cluster
) -> View:
    """Return what the generated rules of one node show."""
    data = rules(services, proxy, mode).encode()
    node = cluster.nodes[proxy.node]
    if mode is ProxyMode.NFTABLES:
        from analyzer.kubeproxy.nftables import NftRecogniser
        from analyzer.parsers import nft_text

        ruleset = nft_text.parse(data.decode(), "generated", None, None, None)
        return NftRecogniser(
            ruleset, cluster, node=proxy.node, node_addresses=node.addresses
        ).view()
    from analyzer.kubeproxy.iptables import Recogniser
    from analyzer.kubeproxy.rows.endpoints import EndpointRows
    from analyzer.parsers import iptables_save

    rows = iptables_save.parse(data.decode(), "generated", None, None, EndpointRows.skim)
    return Recogniser(rows, cluster, node=proxy.node, node_addresses=node.addresses).view()
