"""Warns of ``--node-of`` where the objects say otherwise: they take precedence."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.model.diagnostics import Diagnostic, Severity
from analyzer.reports.phrases import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from analyzer.kubeproxy.view import View
    from analyzer.model.cluster import Cluster


def overruled(cluster: Cluster, view: View, file: str) -> Iterator[Diagnostic]:
    """Yield a warning if the objects place endpoints on other nodes than ``--node-of`` does.

    Without it a node that was named only there would seem to carry nothing.
    """
    if not cluster.networks.by_length:
        return
    places = {}
    for address in dict.fromkeys(each.address for each in view.endpoints):
        said, node = cluster.networks.owner(address), cluster.placement(address).node
        if said is not None and said != node:
            places[address] = node, said
    if not places:
        return
    address, (node, said) = next(iter(places.items()))
    number = count(len(places), "endpoint address", "endpoint addresses")
    yield Diagnostic(
        severity=Severity.WARNING,
        code="node-of-overruled",
        message=(
            f"--node-of does not apply to {number} that the objects place elsewhere, for example "
            f"{address} on {node}, not on {said}; pass objects that are up to date, or mark "
            "endpoints dead by address"
        ),
        file=file,
    )
