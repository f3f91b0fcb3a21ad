"""Warns if a dump shows that it is from another node than the one named.

kube-proxy writes some rules for the endpoints of its own node only: those of Services with a Local
policy, and, in nftables mode since 1.36, the set of flows from an endpoint to itself. If the
objects place all of these endpoints on one other node, the dump is most likely from there. Old
versions of kube-proxy ignore some policies: for these, it shows only where the rules leave out
endpoints of other nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.reports.phrases import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.inputs.recognised import Input
    from analyzer.kubeproxy.view import Route
    from analyzer.model.addresses import Address
    from analyzer.model.services import ApiServicePort


def of_another_node(given: Input) -> Iterator[Diagnostic]:
    """Yield a warning if the dump's local endpoints are on one node, and not the one named."""
    named, cluster = given.view.node, given.cluster
    if named is None or not cluster.places:
        return
    places = {address: cluster.placement(address).node for address in _local(given)}
    nodes = {node for node in places.values() if node is not None}
    if len(nodes) != 1 or named in nodes:
        return
    (node,) = nodes
    shown = listed([str(address) for address, place in places.items() if place is not None])
    yield Diagnostic(
        severity=Severity.WARNING,
        code="dump-of-another-node",
        message=(
            f"this dump seems to be from {node}, not from {named}: the endpoints for which it has "
            f"rules of their own node only ({shown}) are on {node}; pass --node {node}, or the "
            f"dump of {named}"
        ),
        file=given.ruleset.file,
    )


def _local(given: Input) -> dict[Address, None]:
    """Return the addresses of the endpoints that the rules treat as their node's own, in order."""
    found: dict[Address, None] = {}
    local: dict[tuple[str, str], ApiServicePort] = {}
    ready: dict[tuple[str, str], set[Address]] = {}
    for each in given.services():  # of either IP version
        if each.internal_local or each.external_local:
            key = each.name, each.protocol
            local[key] = each
            ready.setdefault(key, set()).update(e.address for e in each.endpoints if e.is_ready)
    for service in given.view.services if local else ():
        key = service.name.text, service.protocol
        if key not in local:
            continue
        theirs = {each for each in ready[key] if each.version == service.version}
        for route in service.routes:
            if _is_local(route, local[key]):
                drawn = {end.address: None for end in route.draws()[0]}
                if not _may_be_ignored(route) or theirs - drawn.keys():
                    found.update(drawn)
    from analyzer.kubeproxy.routes.hairpins import listed as hairpins_of

    for family in ("ip", "ip6"):
        hairpins = hairpins_of(given.every_ruleset, family) or ()
        found.update((address, None) for address in sorted(hairpins, key=int))
    return found


def _is_local(route: Route, spec: ApiServicePort) -> bool:
    """Return whether a policy allows only the node's own endpoints on a route."""
    from analyzer.kubeproxy.view import FrontendKind, Source

    if route.frontend.kind is FrontendKind.CLUSTER_IP:
        return spec.internal_local and route.source is Source.POD
    return spec.external_local is True and route.source is Source.EXTERNAL


def _may_be_ignored(route: Route) -> bool:
    """Return whether some versions ignore the policy of a route.

    Up to 1.18 that of external IPs; up to 1.21, and with an external policy Local up to 1.23, the
    internal one.
    """
    from analyzer.kubeproxy.view import FrontendKind

    return route.frontend.kind in (FrontendKind.CLUSTER_IP, FrontendKind.EXTERNAL_IP)
