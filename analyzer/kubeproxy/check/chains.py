"""Every chain that a rule jumps to exists and is not empty, and a rule jumps to every chain."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.kubeproxy import names
from analyzer.kubeproxy.check.facts import OWN_PREFIXES, DumpFacts
from analyzer.kubeproxy.check.findings import Finding
from analyzer.kubeproxy.matched.chain_rule import ChainRule


def chains(facts: DumpFacts) -> Iterator[Finding]:
    """Find jumps to chains that are missing, chains without rules, and chains without callers."""
    yield from _missing(facts)
    for chain in facts.chains(*OWN_PREFIXES):
        callers = facts.callers.get(chain, [])
        if not facts.rows(chain):
            if len(facts.nat.chains[chain].rules):
                continue  # the dump ends before the chain's rules do, which the parser has reported
            if callers or not _is_refused(facts, chain):
                yield _empty(facts, chain, callers)
        elif not callers and not facts.is_large:
            yield _uncalled(facts, chain)


def _is_refused(facts: DumpFacts, chain: str) -> bool:
    """Return whether a chain is all that a Service with a local policy and without endpoints has.

    Up to 1.23 kube-proxy declares it all the same: pkg/proxy/iptables/proxier.go,
    ``syncProxyRules``; the captures ``policies``.
    """
    prefix, _, of_service = chain.rpartition("-")
    return prefix == "KUBE-XLB" and f"KUBE-SVC-{of_service}" not in facts.nat.chains


def _missing(facts: DumpFacts) -> Iterator[Finding]:
    for table in (facts.nat, facts.filter):
        told = set()
        if not table.complete:
            continue  # a fragment: the parser has reported what is missing
        for row in facts.all_rows(table.name):
            target = row.target or ""
            if row.is_jump and target not in table.chains and target not in told:
                told.add(target)
                yield Finding(
                    code="missing-chain",
                    message=(
                        f"chain {target} of table {table.name} is not in the dump: what happens "
                        f"to {_taken(facts, row)} is not known, and the kernel would refuse such "
                        "rules"
                    ),
                    line=row.line,
                    partial=True,
                )


def _taken(facts: DumpFacts, row: ChainRule) -> str:
    """Return in words what a rule matches."""
    if row.chain.startswith(OWN_PREFIXES):
        return facts.traffic(row.chain)
    if row.chain in {names.SERVICES, names.NODE_PORTS}:
        return f"new flows to {row}"
    return f"packets that this rule of {row.chain} matches"


def _empty(facts: DumpFacts, chain: str, callers: list[ChainRule]) -> Finding:
    if callers:
        message = (
            f"chain {chain} is empty, so {facts.traffic(chain)} that enter it return untranslated "
            "and reach no endpoint: was the dump taken in the middle of a sync?"
        )
        return Finding(code="empty-chain", message=message, line=callers[0].line, partial=True)
    return Finding(
        code="empty-chain",
        message=(
            f"chain {chain} is empty and no rule jumps to it: either flows of its Service are not "
            "translated, for example in the middle of a sync, or it is left over from another "
            "mode of kube-proxy"
        ),
        partial=True,
    )


def _uncalled(facts: DumpFacts, chain: str) -> Finding:
    rows = facts.rows(chain)
    if chain.startswith(names.ENDPOINT_PREFIX):
        what = f"{facts.endpoint(chain)}{_of(rows)} gets no new flow"
    else:
        places = dict.fromkeys(str(row) for row in rows if row.host is not None and row.asks_port)
        to = f" to {', '.join(places)}" if places else _of(rows)
        what = f"new flows{to} are not sent to {chain}, which has endpoints for them"
    return Finding(
        code="unreachable-chain",
        message=f"no rule jumps to {chain}: {what}. A rule is missing, or the chain is left over",
        line=rows[0].line,
    )


def _of(rows: list[ChainRule]) -> str:
    name = next((word for row in rows for word in row.comment.split() if "/" in word), "")
    return f" of {name}" if name else ""
