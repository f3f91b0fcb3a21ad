"""A KUBE-SEP chain is for one endpoint: it marks hairpin flows, and has one DNAT.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``writeServiceToEndpointRules`` and before it
``syncProxyRules``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from analyzer.kubeproxy import names
from analyzer.kubeproxy.check.facts import DumpFacts
from analyzer.kubeproxy.check.findings import Finding
from analyzer.kubeproxy.matched.chain_rule import ChainRule
from analyzer.kubeproxy.names import plain_name
from analyzer.model.addresses import network_from_text

#: 1.2 set the mark in the endpoint's own chain.
_MARKS: Final = frozenset({names.MARK_MASQUERADE, "MARK"})


def endpoints(facts: DumpFacts) -> Iterator[Finding]:
    """Find endpoints without DNAT, with a wrong or missing hairpin mark, or of two Services."""
    for chain in facts.chains(names.ENDPOINT_PREFIX):
        rows = facts.rows(chain)
        if not rows or not facts.callers.get(chain):
            continue
        sends = [row for row in rows if row.has_dnat]
        if sends:
            yield from _sent(facts, chain, sends)
            yield from _hairpin(facts, chain, rows, sends[0])
        else:
            yield Finding(
                code="no-dnat",
                message=(
                    f"{chain} has no DNAT: its share of {facts.traffic(chain)} reaches no "
                    "endpoint, since the DNAT rule is missing or cannot be read"
                ),
                line=rows[-1].line,
                partial=True,
            )
        yield from _shared(facts, chain)


def _sent(facts: DumpFacts, chain: str, sends: list[ChainRule]) -> Iterator[Finding]:
    places = dict.fromkeys(row.dnat for row in sends)
    if len(places) > 1 or None in places:
        yield Finding(
            code="odd-dnat",
            message=(
                f"{chain} does not send its share of {facts.traffic(chain)} to exactly one "
                "address and port, which kube-proxy never writes"
            ),
            line=sends[-1].line,
            partial=True,
        )
    protocols = {protocol for _, protocol in facts.owners.get(chain, {})}
    for row in sends:
        if row.protocol is not None and protocols and row.protocol not in protocols:
            yield Finding(
                code="endpoint-protocol",
                message=(
                    f"{facts.endpoint(chain)} matches {row.protocol} only, so its share of "
                    f"{facts.traffic(chain)} is not translated and reaches no endpoint"
                ),
                line=row.line,
            )


def _hairpin(
    facts: DumpFacts, chain: str, rows: list[ChainRule], sends: ChainRule
) -> Iterator[Finding]:
    to = (sends.dnat or "").rpartition(":")[0].strip("[]")
    if not to:
        return
    marks = [row for row in rows if row.target in _MARKS]
    before = [row for row in marks if row.line < sends.line]
    for row in before:
        if row.source is None and row.is_unconditional:
            yield Finding(
                code="unconditional-mark",
                message=(
                    f"all flows to {facts.endpoint(chain)} are masqueraded, not only its own: for "
                    f"its share of {facts.traffic(chain)} it sees the node as the client"
                ),
                line=row.line,
            )
            return
    itself = network_from_text(to)
    if any(row.source == itself and not row.source_negated for row in before):
        return
    if before:
        yield Finding(
            code="hairpin-address",
            message=(
                f"{chain} marks flows from {before[0].source_text} and sends flows to {to}: a pod "
                f"at {to} that opens {facts.traffic(chain)} and draws itself gets no answer, or "
                "the chain mixes two endpoints"
            ),
            line=before[0].line,
        )
    else:
        yield Finding(
            code="no-hairpin-mark",
            message=f"flows from {to} to itself are not masqueraded: a pod there that opens "
            f"{facts.traffic(chain)} and draws itself gets no answer",
            line=sends.line,
        )


def _shared(facts: DumpFacts, chain: str) -> Iterator[Finding]:
    theirs = facts.owners.get(chain, {})
    owners = dict.fromkeys((plain_name(name), protocol) for name, protocol in theirs)
    # If the Services themselves share a chain, another finding reports that.
    callers = {row.chain for row in facts.callers.get(chain, [])}
    if len(owners) <= 1 or any(
        facts.owners.get(each, {}).keys() == theirs.keys() for each in callers
    ):
        return
    services = ", ".join(f"{name}/{protocol}" for name, protocol in owners)
    last = list(theirs.values())[-1]
    yield Finding(
        code="shared-endpoint",
        message=(
            f"{facts.endpoint(chain)} is drawn by chains of {services}: new flows to one of them "
            "reach an endpoint of the other"
        ),
        line=last.line,
    )
