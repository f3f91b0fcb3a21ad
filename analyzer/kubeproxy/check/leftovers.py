"""No chains of kube-proxy's other modes exist in addition to those of iptables mode.

Source: kubernetes, pkg/proxy/ipvs/proxier.go, ``iptablesChains``; pkg/proxy/userspace/proxier.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from analyzer.kubeproxy.check.facts import DumpFacts
from analyzer.kubeproxy.check.findings import Finding

_IPVS: Final = (
    "KUBE-LOAD-BALANCER",
    "KUBE-LOAD-BALANCER-FW",
    "KUBE-LOAD-BALANCER-SOURCE-CIDR",
    "KUBE-LOAD-BALANCER-SOURCE-IP",
    "KUBE-LOAD-BALANCER-LOCAL",
    "KUBE-NODE-PORT",
    "KUBE-NODE-PORT-TCP",
    "KUBE-NODE-PORT-UDP",
    "KUBE-IPVS-FILTER",
    "KUBE-IPVS-OUT-FILTER",
    "KUBE-SOURCE-RANGES-FIREWALL",
)
_USERSPACE: Final = (
    "KUBE-PORTALS-CONTAINER",
    "KUBE-PORTALS-HOST",
    "KUBE-NODEPORT-CONTAINER",
    "KUBE-NODEPORT-HOST",
    "KUBE-NODEPORT-NON-LOCAL",
)


def leftovers(facts: DumpFacts) -> Iterator[Finding]:
    """Find chains of ipvs and userspace mode."""
    for mode, chains in (("ipvs", _IPVS), ("userspace", _USERSPACE)):
        found = [
            (table.name, chain)
            for table in (facts.nat, facts.filter)
            for chain in chains
            if chain in table.chains
        ]
        if not found:
            continue
        rows = [
            row
            for table, chain in found
            for row in facts.all_rows(table)
            if chain in {row.target, row.chain}
        ]
        names = ", ".join(dict.fromkeys(chain for _, chain in found))
        touched = (
            "new flows to load balancer addresses and NodePorts traverse them before or in "
            "addition to the rules of iptables mode, with old addresses and endpoints"
            if rows
            else (
                "no flow traverses them, but they show that the mode was changed without "
                "cleaning up"
            )
        )
        yield Finding(
            code="leftover-mode",
            message=(
                f"there are chains of {mode} mode in addition to those of iptables mode "
                f"({names}): {touched}; `kube-proxy --cleanup` or a reboot removes them"
            ),
            line=min((row.line for row in rows), default=None),
        )
