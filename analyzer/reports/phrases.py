"""Phrases common to several reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from analyzer.kubeproxy.assumed import ASSUMED
from analyzer.kubeproxy.proxy_mode import ProxyMode
from analyzer.kubeproxy.view import Frontend, FrontendState, ServicePort, Source, View
from analyzer.model.addresses import IPV6
from analyzer.model.diagnostics import Diagnostic
from analyzer.model.endings import PASSES
from analyzer.reports.document import Line, Piece, Span, Style

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from analyzer.model.cluster import Cluster

#: Where a new flow comes from.
SOURCES: Final = {
    Source.POD: "a pod",
    Source.POD_ELSEWHERE: "a pod of another node",
    Source.NODE: "the node itself",
    Source.EXTERNAL: "outside the cluster",
    Source.HAIRPIN: "the endpoint itself",
}


#: Why zones are unknown of endpoints whose nodes are known.
WITHOUT_ZONES: Final = (
    "Their nodes are not in --objects or have no label topology.kubernetes.io/zone."
)


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return ``1 rule``, ``1,001 rules``; `plural` if it is irregular."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def named(service: ServicePort) -> str:
    """Return the name of a ServicePort in a sentence: ``ns/app``, ``ns/app (IPv6)``."""
    return name_of(service.name.text, service.version)


def name_of(name: str, version: int | None) -> str:
    """Return the same of a name and an IP version."""
    return f"{name} (IPv6)" if version == IPV6 else name


def proto(protocol: str, version: int | None) -> str:
    """Return a cell of PROTO: ``tcp``, and ``tcp6`` as netstat(8) has it.

    A ServicePort of both IP versions is two, of one name and one protocol.
    """
    return f"{protocol}6" if version == IPV6 else protocol


#: Most names of a list that are shown.
_MOST_LISTED: Final = 5


def listed(names: Sequence[str]) -> str:
    """Return ``a, b and 3 more``."""
    more = len(names) - _MOST_LISTED
    return ", ".join(names[:_MOST_LISTED]) + (f" and {more:,} more" if more > 0 else "")


def unplaced(number: int, cluster: Cluster) -> str:
    """Return the sentence that the nodes of some endpoints are not known, and what helps."""
    return f"Node unknown for {count(number, 'endpoint')}: losses are ranges. {placing(cluster)}."


def placing(cluster: Cluster) -> str:
    """Return what says where endpoints are."""
    if cluster.has_objects:
        return "The objects do not have it: pass newer ones, or --node-of"
    return "Pass --objects or --node-of"


def at_node(view: View) -> str:
    """Return `` at node worker1``, or nothing if the dump's node is not known."""
    return f" at node {view.node}" if view.node else ""


def mode_words(mode: ProxyMode) -> str:
    """Return ``iptables mode``, or that the dump has no rules of kube-proxy."""
    return "no kube-proxy rules found" if mode is ProxyMode.NONE else f"{mode.value} mode"


def assumed(diagnostics: Iterable[Diagnostic]) -> Iterator[Line]:
    """Yield what an answer is based on besides the dump."""
    found = dict.fromkeys(each.message for each in diagnostics if each.code == ASSUMED)
    for message in found:
        yield Line((Span(f"Assumed: {message}.", Style.FAINT),))


def _refused(service: ServicePort, frontend: Frontend, refusal: str) -> str:
    """Return what is done to flows to a frontend without endpoints, if to all or some."""
    ends = {e.how for r in service.routes if r.frontend == frontend for e, _ in r.astray}
    if ends <= {refusal}:
        return f": {refusal}"
    if len(ends) == 1 and PASSES not in ends:
        return f": {ends.pop()}"
    return f": {refusal} some" if refusal in ends else ""


def state_of_frontend(
    service: ServicePort, frontend: Frontend, state: FrontendState
) -> tuple[Piece, ...]:
    """Return what flows to a frontend meet if not simply endpoints."""
    refusal = dict(service.refusals).get(frontend)
    if refusal is not None:
        if state is FrontendState.ENDPOINTS:
            return (Span(f" else {refusal}", Style.WARNING),)
        return (Span(f" no endpoints{_refused(service, frontend, refusal)}", Style.WARNING),)
    match state:
        case FrontendState.NO_ENDPOINTS:
            return (Span(" no endpoints", Style.WARNING),)
        case FrontendState.ASTRAY:
            return (Span(" sent to no endpoint", Style.WARNING),)
        case FrontendState.UNKNOWN:
            return (Span(" in part unknown", Style.WARNING),)
        case FrontendState.ENDPOINTS:
            return ()
