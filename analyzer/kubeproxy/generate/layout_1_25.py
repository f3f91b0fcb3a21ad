"""The layout of 1.25 and 1.26: that of 1.30 without what 1.27 took over from the kubelet.

Source: kubernetes 1.25 and 1.26, pkg/proxy/iptables/proxier.go, ``syncProxyRules``; the captures.
"""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.kubeproxy.generate import layout_1_30
from analyzer.kubeproxy.generate.config import ProxyConfig
from analyzer.kubeproxy.generate.rows import TableDraft
from analyzer.kubeproxy.generate.specs import ServicePortSpec


def tables(services: Sequence[ServicePortSpec], proxy: ProxyConfig) -> tuple[TableDraft, ...]:
    """Return filter, mangle and nat."""
    return layout_1_30.tables(services, proxy, guards_loopback=False)
