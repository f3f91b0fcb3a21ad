"""Session affinity: a returning client is sent to its endpoint before any draw.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``writeServiceToEndpointRules``; the list of
``-m recent`` has the name of the endpoint's chain.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.kubeproxy import names
from analyzer.kubeproxy.check.facts import DRAWING, DumpFacts
from analyzer.kubeproxy.check.findings import Finding
from analyzer.kubeproxy.matched.chain_rule import ChainRule


def affinity(facts: DumpFacts) -> Iterator[Finding]:
    """Find clients that are drawn again or sent to another endpoint."""
    for chain in facts.chains(*DRAWING):
        rows = facts.endpoint_rows(chain)
        checks = [row for row in rows if row.recent is not None]
        if checks:
            yield from _checks(facts, chain, rows, checks)
        else:
            yield from _unchecked(facts, chain, rows)
    for chain in facts.chains(names.ENDPOINT_PREFIX):
        for row in facts.rows(chain):
            if row.recent is not None and row.recent.name != chain:
                yield Finding(
                    code="affinity-name",
                    message=(
                        f"{facts.endpoint(chain)} records its clients in list {row.recent.name}, "
                        f"not in its own list: returning clients of {facts.traffic(chain)} are "
                        "sent to another endpoint or drawn anew"
                    ),
                    line=row.line,
                )


def _checks(
    facts: DumpFacts, chain: str, rows: list[ChainRule], checks: list[ChainRule]
) -> Iterator[Finding]:
    seconds: dict[int | None, ChainRule] = {}
    first_draw = next((row for row in rows if row.recent is None), None)
    for row in checks:
        assert row.recent is not None  # that is what makes it a check
        target = row.target or ""
        if row.recent.name != target:
            yield Finding(
                code="affinity-name",
                message=(
                    f"clients in list {row.recent.name} are sent to {facts.endpoint(target)}: "
                    f"returning clients of {facts.traffic(chain)} reach another endpoint than "
                    "before"
                ),
                line=row.line,
            )
        sets = [each for each in facts.rows(target) if each.recent is not None]
        if facts.rows(target) and not sets:
            yield Finding(
                code="affinity-not-set",
                message=(
                    f"{facts.endpoint(target)} does not record its clients, so returning clients "
                    f"of {facts.traffic(chain)} are drawn anew each time, despite sessionAffinity"
                ),
                line=row.line,
            )
        seconds.setdefault(row.recent.seconds, row)
        if first_draw is not None and row.line > first_draw.line:
            yield Finding(
                code="affinity-order",
                message=(
                    f"this rule comes after draws (line {first_draw.line}), so "
                    f"{facts.traffic(chain)} from a returning client of {facts.endpoint(target)} "
                    "may be drawn to another endpoint first"
                ),
                line=row.line,
            )
    if len(seconds) > 1:
        told = ", ".join(map(str, seconds))
        yield Finding(
            code="affinity-seconds",
            message=(
                f"endpoints of {facts.traffic(chain)} have different affinity timeouts ({told} "
                "s), which kube-proxy never writes"
            ),
            line=list(seconds.values())[-1].line,
        )
    yield from _both(facts, chain, rows, checks)


def _both(
    facts: DumpFacts, chain: str, rows: list[ChainRule], checks: list[ChainRule]
) -> Iterator[Finding]:
    """Find endpoints that are only drawn, or that only returning clients reach."""
    checked = {row.target for row in checks}
    drawn = {row.target for row in rows if row.recent is None}
    for row in rows:
        if row.recent is None and row.target not in checked:
            yield Finding(
                code="affinity-not-checked",
                message=f"no rule returns clients to {facts.endpoint(row.target or '')}: its share "
                f"of {facts.traffic(chain)} is drawn anew each time, despite sessionAffinity",
                line=row.line,
            )
        elif row.recent is not None and row.target not in drawn:
            yield Finding(
                code="affinity-only",
                message=(
                    f"{facts.endpoint(row.target or '')} is drawn by no rule, and gets only "
                    f"returning clients: the other endpoints' shares of {facts.traffic(chain)} "
                    "are wrong"
                ),
                line=row.line,
            )


def _unchecked(facts: DumpFacts, chain: str, rows: list[ChainRule]) -> Iterator[Finding]:
    for row in rows:
        if any(each.recent is not None for each in facts.rows(row.target or "")):
            yield Finding(
                code="affinity-not-checked",
                message=(
                    f"{facts.endpoint(row.target or '')} records its clients, and {chain} sends "
                    f"none of them back to it: {facts.traffic(chain)} are drawn anew each time, "
                    "despite sessionAffinity"
                ),
                line=row.line,
            )
            return
