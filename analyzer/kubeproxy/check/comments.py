"""Comments agree with the rules.

Source: kubernetes, pkg/proxy/iptables/proxier.go: ``ns/name:port``, and since 1.24
``ns/name:port -> ip:port`` on the rule that draws the endpoint.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.kubeproxy import names
from analyzer.kubeproxy.check.facts import DRAWING, DumpFacts
from analyzer.kubeproxy.check.findings import Finding
from analyzer.kubeproxy.matched.chain_rule import ChainRule
from analyzer.kubeproxy.names import plain_name
from analyzer.model.addresses import address_and_port_from_text


def comments(facts: DumpFacts) -> Iterator[Finding]:
    """Find comments with another endpoint or ServicePort than the rules lead to."""
    for chain in facts.chains(*DRAWING, names.ENDPOINT_PREFIX):
        owners = {plain_name(name) for name, _ in facts.owners.get(chain, {})}
        for row in facts.rows(chain):
            if row.comment:
                yield from _endpoint(facts, row)
                yield from _name(facts, row, owners)


def _endpoint(facts: DumpFacts, row: ChainRule) -> Iterator[Finding]:
    _, arrow, says = row.comment.partition(" -> ")
    to = facts.destinations.get(row.target or "")
    if arrow and to is not None and says != to and _place(says) != _place(to):
        yield Finding(
            code="comment-endpoint",
            message=(
                f"the comment says endpoint {says}, but {row.target} sends flows to {to}: this "
                f"share of {facts.traffic(row.chain)} goes to another endpoint than intended"
            ),
            line=row.line,
        )


def _place(text: str) -> object:
    """Return the address and port, since IPv6 has more than one spelling."""
    return address_and_port_from_text(text) or text


def _name(facts: DumpFacts, row: ChainRule, owners: set[str]) -> Iterator[Finding]:
    name = next((word for word in row.comment.split(" ") if "/" in word), None)
    if name is not None and owners and plain_name(name) not in owners:
        yield Finding(
            code="comment-service",
            message=(
                f"the comment says {name}, but the rule matches {facts.traffic(row.chain)}: it "
                "was written for another Service"
            ),
            line=row.line,
        )
