"""Rules that come before kube-proxy's do not keep flows from endpoints that are ready.

kube-proxy's own chains draw these endpoints, so the other checks find nothing: for example a
repair that was not undone (``kubeodds repair``) still leaves out endpoints that have come back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from analyzer.kubeproxy import names
from analyzer.kubeproxy.check.facts import DumpFacts
from analyzer.kubeproxy.check.findings import Finding
from analyzer.kubeproxy.check.objects import required, text_of
from analyzer.kubeproxy.matched.chain_rule import ChainRule
from analyzer.kubeproxy.names import plain_name

_HOOKS: Final = ("PREROUTING", "OUTPUT")


def bypassed(facts: DumpFacts) -> Iterator[Finding]:
    """Find ready endpoints that kube-proxy's chains draw, and that no flow is sent to."""
    before = [row for hook in _HOOKS for row in _before(facts, hook)]
    if not before or not facts.wanted:
        return
    drawn = {*facts.destinations.values()}
    for want in facts.wanted:
        service = facts.routed.get((plain_name(want.name), want.protocol))
        if service is None or not all(route.is_certain for route in service.routes):
            continue
        reached = {(each.address, each.port) for each in service.endpoints}
        texts = [
            text
            for each in required(facts, names.SERVICE_PREFIXES[0], want)
            if (each.address, each.port) not in reached and (text := text_of(each)) in drawn
        ]
        if not texts:
            continue
        more = f" and {len(texts) - 2} more" if texts[2:] else ""
        yield Finding(
            code="missing-endpoint",
            message=(
                f"new flows to {want.name} are never sent to {', '.join(texts[:2])}{more}, which "
                "the EndpointSlices list as ready and kube-proxy's chains draw: rules that come "
                f"before {names.SERVICES}, such as this one, send them elsewhere"
            ),
            line=before[0].line,
        )


def _before(facts: DumpFacts, hook: str) -> list[ChainRule]:
    """Return the rules of a base chain of nat before its jump to kube-proxy's."""
    rows = facts.rows(hook) if hook in facts.nat.chains else []
    at = next((n for n, row in enumerate(rows) if row.target == names.SERVICES), 0)
    return [*rows[:at]]
