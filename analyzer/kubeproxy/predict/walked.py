"""Rules that a kube-proxy would write, generated and evaluated like any dump."""

from __future__ import annotations

from collections.abc import Iterable

from analyzer.kubeproxy.generate.config import ProxyConfig
from analyzer.kubeproxy.generate.render import render_nft, render_rules
from analyzer.kubeproxy.generate.specs import ServicePortSpec
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.view import View
from analyzer.model.cluster import Cluster
from analyzer.model.value import replace


def rules(services: Iterable[ServicePortSpec], proxy: ProxyConfig, mode: ProxyMode) -> str:
    """Return the rules of one node, for the IP version of its kube-proxy."""
    render = render_nft if mode is ProxyMode.NFTABLES else render_rules
    return render(services, proxy)


def companion(services: Iterable[ServicePortSpec]) -> ServicePortSpec | None:
    """Return a ServicePort with one endpoint whose rules name the network of pods; None: none do.

    Rules of other ServicePorts may be evaluated without each other, but not without this one: at
    every node they are beside it, and which sources are pods is read from its rules. With
    ``--masquerade-all`` only those with ``externalTrafficPolicy: Local`` name that network.
    """
    others: ServicePortSpec | None = None
    for service in services:
        endpoint = next((each for each in service.endpoints if each.ready), None)
        is_local = service.external_local and service.is_external
        if endpoint is None or not (is_local or (others is None and not service.internal_local)):
            continue
        found = replace(service, endpoints=(replace(endpoint, zones=(), nodes=()),))
        if is_local:
            return found
        others = found
    return others


def walked(
    services: Iterable[ServicePortSpec],
    proxy: ProxyConfig,
    mode: ProxyMode,
    cluster: Cluster,
    beside: ServicePortSpec | None = None,
) -> View:
    """Return what the generated rules of one node show, with those of a `companion` beside them."""
    services = tuple(services)
    if beside is not None and all(
        (each.name, each.protocol) != (beside.name, beside.protocol) for each in services
    ):
        services = *services, beside
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
