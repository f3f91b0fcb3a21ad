"""The layout of 1.36: that of 1.30, with nfacct counters for some packets."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.kubeproxy.generate import layout_1_30
from analyzer.kubeproxy.generate.config import IPV4, ProxyConfig
from analyzer.kubeproxy.generate.rows import TableDraft
from analyzer.kubeproxy.generate.specs import ServicePortSpec


def tables(services: Sequence[ServicePortSpec], proxy: ProxyConfig) -> tuple[TableDraft, ...]:
    """Return filter, mangle and nat."""
    localhost = proxy.family == IPV4 and proxy.localhost_node_ports
    return layout_1_30.tables(
        services,
        proxy,
        invalid=_counter("ct_state_invalid_dropped_pkts") if proxy.nfacct else "",
        localhost=_counter("localhost_nps_accepted_pkts") if localhost and proxy.nfacct else "",
    )


def _counter(name: str) -> str:
    # iptables 1.8.9 prints two blanks there.
    return f" -m nfacct --nfacct-name  {name}"
