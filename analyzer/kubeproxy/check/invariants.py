"""The list of all invariants, and the one place that evaluates them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from analyzer.kubeproxy.check.affinity import affinity
from analyzer.kubeproxy.check.bypassed import bypassed
from analyzer.kubeproxy.check.chains import chains
from analyzer.kubeproxy.check.comments import comments
from analyzer.kubeproxy.check.draws import draws
from analyzer.kubeproxy.check.endpoints import endpoints
from analyzer.kubeproxy.check.entry import entry
from analyzer.kubeproxy.check.external import external
from analyzer.kubeproxy.check.facts import DumpFacts
from analyzer.kubeproxy.check.findings import Checked, Finding, gathered
from analyzer.kubeproxy.check.frontends import frontends
from analyzer.kubeproxy.check.hashes import hashes
from analyzer.kubeproxy.check.leftovers import leftovers
from analyzer.kubeproxy.check.masquerade import masquerade
from analyzer.kubeproxy.check.objects import objects
from analyzer.kubeproxy.check.refusal import refusal
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.view import ServicePort
from analyzer.model.iptables.rules import Ruleset
from analyzer.model.services import ApiServicePort

Invariant = Callable[[DumpFacts], Iterator[Finding]]

#: The checks of the rules of iptables mode. A new invariant is one file and one line.
INVARIANTS: Final[dict[str, Invariant]] = {
    "draws": draws,
    "chains": chains,
    "endpoints": endpoints,
    "hashes": hashes,
    "comments": comments,
    "frontends": frontends,
    "entry": entry,
    "masquerade": masquerade,
    "refusal": refusal,
    "external": external,
    "affinity": affinity,
    "leftovers": leftovers,
    "objects": objects,
    "bypassed": bypassed,
}


#: Findings that something is missing: in a dump that is cut off or a fragment they mean nothing.
_OF_ABSENCE: Final = frozenset(
    {
        "affinity-not-checked",
        "affinity-not-set",
        "affinity-only",
        "empty-chain",
        "lost-drop",
        "lost-frontend",
        "lost-local-mark",
        "lost-local-route",
        "lost-pod-route",
        "mark-not-cleared",
        "missing-endpoint",
        "missing-frontend",
        "missing-service",
        "no-base-chain",
        "no-dnat",
        "no-drop-mark",
        "no-entry",
        "no-forward-accept",
        "no-hairpin-mark",
        "no-last-endpoint",
        "no-masquerade",
        "no-nodeports",
        "no-outside-mark",
        "no-source-range",
        "unreachable-chain",
    }
)


def check(
    ruleset: Ruleset,
    mode: ProxyMode,
    wanted: tuple[ApiServicePort, ...] = (),
    *,
    node: str | None = None,
    zone: str | None = None,
    routed: Iterable[ServicePort] = (),
) -> Checked:
    """Return what is broken in a dump of kube-proxy in `mode`.

    `wanted` are the Services of the API; empty: not given. `routed` are those of the dump, with
    the routes of their flows.

    Raises:
        ParseError: a rule is malformed.
    """
    if mode is not ProxyMode.IPTABLES:
        return gathered([_unchecked(mode)], ruleset.file)
    facts = DumpFacts(ruleset, wanted, node, zone, routed)
    found = [finding for invariant in INVARIANTS.values() for finding in invariant(facts)]
    if not (facts.nat.complete and facts.filter.complete):
        found = [finding for finding in found if finding.code not in _OF_ABSENCE]
        found.append(_INCOMPLETE)
    if "filter" not in ruleset.tables:
        found.append(_no_filter(ruleset.family))
    return gathered(found, ruleset.file)


_INCOMPLETE: Final = Finding(
    code="incomplete",
    message=(
        "the dump is a fragment, or ends before its tables do: missing rules and chains may be in "
        "the rest, so they are not reported here"
    ),
    partial=True,
)


def _no_filter(family: str) -> Finding:
    program = "iptables-save" if family == "ip" else "ip6tables-save"
    return Finding(
        code="missing-table",  # as the note that it replaces
        message=(
            "table filter is not in the dump, so its rules were not checked: those that refuse "
            f"flows to Services, and that accept forwarded ones; pass the whole output of {program}"
        ),
        partial=True,
    )


def _unchecked(mode: ProxyMode) -> Finding:
    what = f"kube-proxy's {mode.value} mode"
    if mode is ProxyMode.NONE:
        what = "no rules of kube-proxy"
    return Finding(
        code="not-checked",
        message=(
            f"the dump shows {what}; the checks are for iptables mode, so nothing was compared "
            "with what kube-proxy writes"
        ),
    )
