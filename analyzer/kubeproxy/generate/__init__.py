"""Generates kube-proxy's rules for given Services, as iptables-save or nft prints them.

Theory of operation: `service_ports` reads API objects into `ServicePortSpec` values, `proxy_config`
the settings of one kube-proxy; either may also be constructed directly. `render_rules` returns all
tables of the layout of that version, `render_nft` those of nftables mode. The layouts are those of
the captures of their versions, row by row; the rows of one chain are in kube-proxy's order, except
for chains with rows of several Services: kube-proxy itself writes those in any order. `services`
with `iptables_save`, `nft_text` and `nft_json` make ClusterIP Services alone, of any number.
"""

from analyzer.kubeproxy.generate.config import ProxyConfig, RulesLayout
from analyzer.kubeproxy.generate.mixed import FLAGS, mixed, node_name
from analyzer.kubeproxy.generate.objects import proxy_config, service_ports
from analyzer.kubeproxy.generate.plain import (
    GeneratedService,
    api_objects,
    iptables_save,
    nft_json,
    nft_text,
    services,
)
from analyzer.kubeproxy.generate.render import render_nft, render_rules
from analyzer.kubeproxy.generate.specs import EndpointSpec, ServicePortSpec

__all__ = [
    "FLAGS",
    "EndpointSpec",
    "GeneratedService",
    "ProxyConfig",
    "RulesLayout",
    "ServicePortSpec",
    "api_objects",
    "iptables_save",
    "mixed",
    "nft_json",
    "nft_text",
    "node_name",
    "proxy_config",
    "render_nft",
    "render_rules",
    "service_ports",
    "services",
]
