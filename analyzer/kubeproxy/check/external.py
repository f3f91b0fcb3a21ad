"""Traffic from outside: what a load balancer's chain admits, and what a local policy does.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``syncProxyRules``: KUBE-FW, KUBE-XLB, KUBE-EXT.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from analyzer.kubeproxy import names
from analyzer.kubeproxy.check.facts import DumpFacts, listed
from analyzer.kubeproxy.check.findings import Finding
from analyzer.kubeproxy.matched.chain_rule import ChainRule
from analyzer.model.addresses import Network, network_to_text


def external(facts: DumpFacts) -> Iterator[Finding]:
    """Find load balancers that admit no client, and local policies that lack an exception."""
    for chain in facts.chains("KUBE-FW-"):
        rows = facts.rows(chain)
        if rows and not any(_leads_on(row) for row in rows):
            yield Finding(
                code="no-source-range",
                message=(
                    f"{chain} admits no source: {facts.traffic(chain)} are refused or leave "
                    "untranslated, even those from loadBalancerSourceRanges"
                ),
                line=rows[-1].line,
            )
    network = _pod_network(facts)
    for chain in facts.chains("KUBE-EXT-", "KUBE-XLB-"):
        yield from _exceptions(facts, chain, network)


def _leads_on(row: ChainRule) -> bool:
    return row.is_jump and (row.target or "").startswith(names.SERVICE_PREFIXES)


def _pod_network(facts: DumpFacts) -> Network | None:
    """Return the network of pods as the rules for flows from outside write it."""
    of_services = (row for row in facts.all_rows() if row.chain.startswith("KUBE-SVC-"))
    for row in itertools.chain(facts.rows(names.SERVICES), of_services):
        if row.target == names.MARK_MASQUERADE and row.source_negated and row.asks_port:
            return row.source
    return None


def _exceptions(facts: DumpFacts, chain: str, network: Network | None) -> Iterator[Finding]:
    """Find flows of pods and of the node that a local policy affects, although it should not."""
    rows = facts.rows(chain)
    to_all = [row for row in rows if row.is_jump and (row.target or "").startswith("KUBE-SVC-")]
    marks_all = any(r.target == names.MARK_MASQUERADE and r.is_unconditional for r in rows)
    if not rows or marks_all or any(row.is_unconditional for row in to_all):
        return  # a policy for the whole cluster
    # 1.14 and 1.15 had no exception for the node itself.
    routes = [row for row in to_all if row.others]
    marks = [row for row in rows if row.target == names.MARK_MASQUERADE and row.others]
    traffic = listed(facts.frontends_of(chain)) or chain
    if chain.startswith("KUBE-EXT-") or routes or marks:
        if not routes:
            yield Finding(
                code="lost-local-route",
                message=(
                    f"new flows from the node itself to {traffic} are restricted to endpoints on "
                    f"this node by the local policy: {chain} no longer sends them to all endpoints"
                ),
                line=rows[-1].line,
            )
        if not marks:
            yield Finding(
                code="lost-local-mark",
                message=(
                    f"new flows from the node itself to {traffic} are not masqueraded, and "
                    "endpoints on other nodes may have no route back"
                ),
                line=rows[-1].line,
            )
    if network is not None and not any(row.source == network for row in to_all):
        yield Finding(
            code="lost-pod-route",
            message=(
                f"new flows from pods ({network_to_text(network)}) to {traffic} are restricted to "
                f"endpoints on this node by the local policy: {chain} no longer sends them to all "
                "endpoints"
            ),
            line=rows[-1].line,
        )
