"""Every frontend is one address, protocol and port, once, and NodePorts come last.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``syncProxyRules``: "NOTE: this must be the last
rule in this chain".
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.kubeproxy import names
from analyzer.kubeproxy.check.facts import DumpFacts
from analyzer.kubeproxy.check.findings import Finding
from analyzer.kubeproxy.matched.chain_rule import ChainRule, FrontendKey


def frontends(facts: DumpFacts) -> Iterator[Finding]:
    """Find frontends without a port, doubled, or after the NodePorts."""
    yield from _ports(facts)
    yield from _twice(facts)
    yield from _lost(facts)
    yield from _node_ports(facts)


def _ports(facts: DumpFacts) -> Iterator[Finding]:
    for row in (*facts.frontends, *facts.refusals):
        if row.asks_port or row.others:  # multiport and unreadable matches may include the port
            continue
        what = f"every {row.protocol} flow" if row.protocol else "every flow"
        yield Finding(
            code="lost-port",
            message=(
                f"{what} to {row.place.rpartition(':')[0]}, whatever its port, goes to "
                f"{row.service or 'this Service'}, so other ports of the address are lost: "
                "kube-proxy writes no such rule; an iptables older than the one that wrote the "
                "rules left out --dport when it saved them; take the dump again with the newer "
                "one"
            ),
            line=row.line,
            partial=True,
        )


def _twice(facts: DumpFacts) -> Iterator[Finding]:
    seen: dict[FrontendKey, ChainRule] = {}
    for row in facts.frontends:
        narrower = row.source or row.local or row.others
        if row.port is None or narrower or (row.destination and not row.host):
            continue
        first = seen.setdefault(row.frontend_key, row)
        # An address may be both an external IP and a load balancer's IP of one ServicePort.
        if first is row or (first.service == row.service and first.kind != row.kind):
            continue
        other = first.target != row.target
        yield Finding(
            code="duplicate-frontend",
            message=f"new flows to {row} never reach this rule, since line {first.line} "
            + (
                f"sends them to {first.service or first.target}: the Service gets none of them"
                if other
                else "is the same; if the dump shows one chain twice, it was pasted together"
            ),
            line=row.line,
        )


def _lost(facts: DumpFacts) -> Iterator[Finding]:
    """Find rules that mark or count the flows of a frontend which no rule then sends on."""
    sent = {each.frontend_key for each in facts.frontends if not each.is_loopback}
    told = set()
    prepared = [f for f in facts.frontends if f.is_loopback]
    for chain in (names.SERVICES, names.NODE_PORTS, *facts.chains("KUBE-SVC-", "KUBE-SVL-")):
        if chain.startswith(names.SERVICE_PREFIXES) and not facts.callers.get(chain):
            continue  # another finding reports the chain
        prepared += [
            row
            for row in facts.rows(chain)
            if row.target == names.MARK_MASQUERADE and row.asks_port
        ]
    for frontend in prepared:
        key = frontend.frontend_key
        if key not in sent and key not in told and frontend.port is not None:
            told.add(key)
            yield Finding(
                code="lost-frontend",
                message=(
                    f"no rule sends new flows to {frontend} to its endpoints, although this one "
                    "exists for them: they leave untranslated"
                ),
                line=frontend.line,
            )


def _node_ports(facts: DumpFacts) -> Iterator[Finding]:
    rows = facts.rows(names.SERVICES)
    jumps = [row for row in rows if row.target == names.NODE_PORTS]
    of_node_ports = [f for f in facts.frontends if f.chain == names.NODE_PORTS]
    if not jumps:
        if of_node_ports and names.SERVICES in facts.nat.chains:
            yield Finding(
                code="no-nodeports",
                message=(
                    "no rule of KUBE-SERVICES jumps to KUBE-NODEPORTS, so new flows to "
                    f"{of_node_ports[0]} and all other NodePorts are not translated"
                ),
                line=rows[-1].line if rows else None,
            )
        return
    for jump in jumps:
        if not jump.local and jump.host is None and not jump.others:
            yield Finding(
                code="lost-addrtype",
                message=(
                    "KUBE-SERVICES sends flows to any address to KUBE-NODEPORTS, so flows from "
                    "pods to such ports on other hosts are caught here: --dst-type LOCAL is "
                    "missing"
                ),
                line=jump.line,
            )
    first = jumps[0]
    for row in rows:
        if row.line <= first.line or row in jumps:
            continue
        frontend = row
        yield Finding(
            code="nodeports-not-last",
            message=(
                f"this rule comes after the jump to KUBE-NODEPORTS in line {first.line}, which "
                f"kube-proxy keeps last: new flows to {frontend} may go to a NodePort if the "
                "address is the node's"
            ),
            line=row.line,
        )
