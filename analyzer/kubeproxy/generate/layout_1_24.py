"""The layout of 1.24: the chains of 1.25, and marks for what the kubelet drops.

Source: kubernetes 1.24, pkg/proxy/iptables/proxier.go, ``syncProxyRules``; the captures of 1.24.
"""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.kubeproxy.generate import layout_1_30
from analyzer.kubeproxy.generate.config import ProxyConfig
from analyzer.kubeproxy.generate.layout_1_14 import write_marked_drops
from analyzer.kubeproxy.generate.rows import TableDraft
from analyzer.kubeproxy.generate.specs import ServicePortSpec
from analyzer.kubeproxy.names import MARK_DROP


def tables(services: Sequence[ServicePortSpec], proxy: ProxyConfig) -> tuple[TableDraft, ...]:
    """Return filter, mangle and nat; KUBE-MARK-DROP is empty except for the kubelet's rules."""
    found = layout_1_30.tables(services, proxy, guards_loopback=False, marks_drops=True)
    filter_table, _, nat = found
    nat.rows.setdefault(MARK_DROP, [])
    if proxy.kubelet:
        write_marked_drops(filter_table, nat)
    return found
