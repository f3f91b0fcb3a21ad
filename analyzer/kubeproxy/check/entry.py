"""Flows reach kube-proxy's chains, and no rule before them matches every packet.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``iptablesJumpChains``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from analyzer.kubeproxy import names
from analyzer.kubeproxy.check.facts import DumpFacts
from analyzer.kubeproxy.check.findings import Finding
from analyzer.kubeproxy.matched.chain_rule import ChainRule

#: Table, base chain, chain, and the traffic that reaches the chain from there.
_JUMPS: Final = (
    ("nat", "PREROUTING", names.SERVICES, "new flows from pods and from outside to any Service"),
    ("nat", "OUTPUT", names.SERVICES, "new flows from the node itself to any Service"),
    (
        "nat",
        "POSTROUTING",
        "KUBE-POSTROUTING",
        "new flows that are marked for masquerading, from outside or from a pod to itself",
    ),
    ("filter", "OUTPUT", names.SERVICES, "flows from the node to Services without endpoints"),
    ("filter", "FORWARD", names.SERVICES, "flows from pods to Services without endpoints"),
    (
        "filter",
        "INPUT",
        names.EXTERNAL_SERVICES,
        "flows from outside to NodePorts and external addresses without endpoints",
    ),
    ("filter", "INPUT", "KUBE-FIREWALL", "flows to this node that are to be dropped"),
    ("filter", "INPUT", names.NODE_PORTS, "load balancers' health checks of Services"),
    (
        "filter",
        "FORWARD",
        names.EXTERNAL_SERVICES,
        "flows from pods to NodePorts and external addresses without endpoints",
    ),
    ("filter", "OUTPUT", "KUBE-FIREWALL", "flows from this node that are to be dropped"),
    ("filter", "FORWARD", "KUBE-FORWARD", "forwarded packets of marked and of established flows"),
    (
        "filter",
        "FORWARD",
        "KUBE-PROXY-FIREWALL",
        "flows from outside loadBalancerSourceRanges",
    ),
    ("filter", "INPUT", "KUBE-PROXY-FIREWALL", "flows from outside loadBalancerSourceRanges"),
    ("filter", "OUTPUT", "KUBE-PROXY-FIREWALL", "flows from outside loadBalancerSourceRanges"),
)
#: Most hooks of `_JUMPS` are of 1.17 and later; the last one came between 1.18 and 1.25.
_SINCE_1_17: Final = "KUBE-PROXY-CANARY"
_SINCE_1_25: Final = "KUBE-PROXY-FIREWALL"


def entry(facts: DumpFacts) -> Iterator[Finding]:
    """Find base chains that do not jump to kube-proxy's, or that end all packets before."""
    for table, hook, chain, traffic in _JUMPS:
        if not _is_asked_for(facts, table, hook, chain):
            continue
        if hook not in facts.ruleset.tables[table].chains:
            yield Finding(
                code="no-base-chain",
                message=(
                    f"{hook} of table {table} is not in the dump, so it is not known whether "
                    f"{traffic} reach {chain}"
                ),
            )
            continue
        rows = facts.rows(hook, table)
        at = next((at for at, row in enumerate(rows) if _leads(row, chain)), None)
        if at is None:
            yield Finding(
                code="no-entry",
                message=(
                    f"{hook} of table {table} has no rule that jumps to {chain}: {traffic} do not "
                    "reach it, and its rules have no effect"
                ),
            )
            continue
        for before in rows[:at]:
            if _takes_all(facts, table, before, frozenset({hook})):
                yield Finding(
                    code="shadowed-entry",
                    message=(
                        f"this rule of {hook} matches every packet, so {traffic} never reach "
                        f"{chain}, which comes after it in line {rows[at].line}"
                    ),
                    line=before.line,
                )
                break


def _is_asked_for(facts: DumpFacts, table: str, hook: str, chain: str) -> bool:
    if not facts.rows(chain, table):
        return False  # there is no chain to jump to
    if table == "nat":
        return True
    base = facts.filter.chains
    if (hook, chain) == ("FORWARD", names.EXTERNAL_SERVICES):
        return _SINCE_1_25 in base
    always = (hook, chain) in {("OUTPUT", names.SERVICES), ("FORWARD", "KUBE-FORWARD")}
    return always or _SINCE_1_17 in base


def _leads(row: ChainRule, chain: str) -> bool:
    return row.is_jump and row.target == chain


def _takes_all(facts: DumpFacts, table: str, row: ChainRule, seen: frozenset[str]) -> bool:
    """Return whether no packet continues after a rule."""
    if not row.is_unconditional:
        return False
    if row.is_final or row.target == "RETURN":
        return True
    if not row.is_jump or row.target is None or row.target in seen:
        return False
    for each in facts.rows(row.target, table):
        if each.target == "RETURN":
            return False  # it may return some of them
        if _takes_all(facts, table, each, seen | {row.target}):
            return True
    return False
