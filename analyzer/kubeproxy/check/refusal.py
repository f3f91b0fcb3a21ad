"""The filter table drops and rejects exactly what kube-proxy drops and rejects.

Source: kubernetes, pkg/proxy/iptables/proxier.go, ``syncProxyRules``; up to 1.23 a mark decides
what is dropped, by the kubelet's rule in KUBE-FIREWALL: pkg/kubelet/kubelet_network_linux.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from analyzer.kubeproxy import names
from analyzer.kubeproxy.check.facts import DumpFacts, listed
from analyzer.kubeproxy.check.findings import Finding
from analyzer.kubeproxy.matched.chain_rule import ChainRule

_FIREWALL: Final = "KUBE-FIREWALL"
_PROXY_FIREWALL: Final = "KUBE-PROXY-FIREWALL"
#: kube-proxy's chains of the filter table, in which every rule is for some traffic only.
_CHAINS: Final = (
    names.SERVICES,
    names.EXTERNAL_SERVICES,
    names.NODE_PORTS,
    "KUBE-FORWARD",
    _FIREWALL,
    _PROXY_FIREWALL,
)
_OF_SERVICES: Final = ("KUBE-SVC-", "KUBE-XLB-", "KUBE-EXT-")
_OF_ENDPOINTS: Final = ("KUBE-SVC-", "KUBE-SVL-", names.ENDPOINT_PREFIX)
_SAYS: Final = {"DROP": "drops", "REJECT": "rejects", "ACCEPT": "accepts"}


def refusal(facts: DumpFacts) -> Iterator[Finding]:
    """Find refusals that are missing, for all traffic, or for frontends with endpoints."""
    yield from _of_all(facts)
    yield from _drop_mark(facts)
    yield from _source_ranges(facts)
    yield from _local(facts)
    yield from _served(facts)


def _of_all(facts: DumpFacts) -> Iterator[Finding]:
    for chain in _CHAINS:
        for row in facts.rows(chain, "filter"):
            if row.target in _SAYS and row.is_unconditional and not row.is_jump:
                hooks = dict.fromkeys(
                    r.chain for r in facts.all_rows("filter") if r.target == chain
                )
                yield Finding(
                    code="unconditional-verdict",
                    message=(
                        f"{chain} {_SAYS[row.target]} every packet that reaches "
                        f"it{' from ' + ', '.join(hooks) if hooks else ''}, whatever its mark or "
                        "state: an older iptables may have left out a match in the dump; if the "
                        "kernel has the rule like this, later rules are never evaluated"
                    ),
                    line=row.line,
                )


def _drop_mark(facts: DumpFacts) -> Iterator[Finding]:
    callers = facts.callers.get(names.MARK_DROP, [])
    if not callers or names.MARK_DROP not in facts.nat.chains:
        return
    callers = [row for row in callers if not _is_behind_endpoints(facts, row)]
    if not callers:
        return
    refused = listed(f for row in callers for f in facts.frontends_of(row.chain))
    refused = f"new flows to {refused}" if refused else "flows that were not admitted"
    bit = facts.bit_set_by(names.MARK_DROP)
    if bit is None:
        yield Finding(
            code="no-drop-mark",
            message=(
                f"KUBE-MARK-DROP marks nothing, so {refused} that loadBalancerSourceRanges or a "
                "local policy refuse leave untranslated instead of being dropped: the kubelet's "
                "rule is missing"
            ),
            line=callers[0].line,
        )
        return
    if "filter" not in facts.ruleset.tables:
        return
    drops = [
        row
        for row in facts.all_rows("filter")
        if row.target == "DROP" and row.mark is not None and row.mark.mask == bit
    ]
    unconditional = any(
        row.target == "DROP" and row.is_unconditional for row in facts.rows(_FIREWALL, "filter")
    )
    if not drops and not unconditional:
        yield Finding(
            code="lost-drop",
            message=(
                f"nothing drops what KUBE-MARK-DROP marks with {bit:#x}, so {refused} that "
                "loadBalancerSourceRanges or a local policy refuse leave untranslated: the rule "
                "of KUBE-FIREWALL is missing"
            ),
            line=callers[0].line,
        )


def _is_behind_endpoints(facts: DumpFacts, row: ChainRule) -> bool:
    """Return whether rules before this one in its chain send every flow to an endpoint."""
    return any(
        before.is_unconditional
        and before.is_jump
        and any(draw.is_unconditional for draw in facts.draws(before.target or ""))
        for before in facts.rows(row.chain)
        if before.line < row.line
    )


def _source_ranges(facts: DumpFacts) -> Iterator[Finding]:
    if "filter" not in facts.ruleset.tables:
        return
    dropped = {
        row.frontend_key for row in facts.rows(_PROXY_FIREWALL, "filter") if row.target == "DROP"
    }
    for frontend in facts.frontends:
        chain = frontend.target or ""
        if not chain.startswith("KUBE-FW-") or not facts.rows(chain):
            continue
        marks = any(row.target == names.MARK_DROP for row in facts.rows(chain))
        if marks or any(
            row.is_unconditional and row.is_jump and (row.target or "").startswith(_OF_SERVICES)
            for row in facts.rows(chain)
        ):
            continue
        if frontend.frontend_key not in dropped:
            yield Finding(
                code="lost-drop",
                message=(
                    f"new flows to {frontend} from outside its loadBalancerSourceRanges are not "
                    f"dropped: {chain} does not mark them, {_PROXY_FIREWALL} has no rule for "
                    "them, and they leave untranslated"
                ),
                line=frontend.line,
            )


def _local(facts: DumpFacts) -> Iterator[Finding]:
    """Find frontends whose flows return from the chain for external traffic and are not dropped."""
    refused = {each.frontend_key for each in facts.refusals}
    for chain in facts.chains("KUBE-EXT-", "KUBE-XLB-"):
        rows = facts.rows(chain)
        decided = [
            row
            for row in rows
            if row.target == names.MARK_DROP
            or (row.is_jump and (row.target or "").startswith(_OF_ENDPOINTS) and not row.local)
        ]
        if not rows or any(row.is_unconditional or row.probability for row in decided):
            continue
        open_to_all = [
            each for each in facts.frontends_of(chain) if each.frontend_key not in refused
        ]
        if open_to_all and "filter" in facts.ruleset.tables:
            yield Finding(
                code="lost-drop",
                message=(
                    f"new flows from outside to {listed(open_to_all)} return from {chain} "
                    "undecided: they reach neither endpoints nor a DROP, so they leave "
                    "untranslated"
                ),
                line=rows[-1].line,
            )


def _served(facts: DumpFacts) -> Iterator[Finding]:
    refused = {
        each.frontend_key: each
        for each in facts.refusals
        if each.target == "REJECT" and each.port is not None
    }
    for frontend in facts.frontends:
        other = refused.get(frontend.frontend_key)
        if other is not None and facts.has_rows(frontend.target or ""):
            yield Finding(
                code="refused-and-served",
                message=(
                    f"new flows to {frontend} are sent to endpoints by table nat and rejected by "
                    f"table filter (line {other.line}) for lack of endpoints: one of the two "
                    "is from an earlier sync"
                ),
                line=frontend.line,
            )
