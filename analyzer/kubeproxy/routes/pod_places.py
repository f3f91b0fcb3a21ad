"""Sets of the addresses on a node, and of those on other nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from analyzer.model.addresses import WIDTHS, Address
from analyzer.model.cluster import Cluster
from analyzer.model.intervals import Interval, Intervals, joined, without
from analyzer.model.routing import Routes
from analyzer.semantics.devices import PodPlaces

_UNKNOWN: Final = Routes()


def pod_places(
    version: int,
    cluster: Cluster,
    node: str | None,
    own: Iterable[Address],
    routes: Routes = _UNKNOWN,
) -> PodPlaces:
    """Return where addresses are, as `Cluster.placement` gives it for each; `own` are the node's.

    Nothing but what the `routes` say if it is not known which node the dump is from.
    """
    here: Intervals = ()
    elsewhere: Intervals = ()
    routed = routes.by_device(version) if routes.routes else ()
    if node is None:
        return PodPlaces(routed=routed)
    # In order of increasing precedence: podCIDRs, networks, addresses; of networks the longest
    # prefix.
    for owners in (cluster.pod_networks, cluster.networks):
        for (of, length), named in sorted(owners.by_length.items()):
            if of != version:
                continue
            width = WIDTHS[version] - length
            spans = [(n << width, ((n + 1) << width) - 1, name) for n, name in named.items()]
            here, elsewhere = _said(here, elsewhere, spans, node)
    mine = frozenset(own)
    spans = [
        (int(address), int(address), placement.node)
        for address, placement in cluster.placements.items()
        if address.version == version and placement.node is not None
    ]
    here, elsewhere = _said(here, elsewhere, spans, node)
    here = without(here, joined((int(a), int(a)) for a in mine if a.version == version))
    return PodPlaces(here, elsewhere, routed)


def _said(
    here: Intervals, elsewhere: Intervals, spans: list[tuple[int, int, str | None]], node: str
) -> tuple[Intervals, Intervals]:
    """Return both with some spans set, in which nothing that was set before counts."""
    every = joined((first, last) for first, last, _ in spans)
    mine: list[Interval] = [(first, last) for first, last, name in spans if name == node]
    # A network of two nodes counts for neither.
    theirs = [(first, last) for first, last, name in spans if name not in {node, None}]
    return joined([*without(here, every), *mine]), joined([*without(elsewhere, every), *theirs])
